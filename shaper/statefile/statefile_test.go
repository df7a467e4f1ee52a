package statefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/shaper/statefile"
)

func newShaper(t *testing.T, r scheduler.Rate) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r)
	require.NoError(t, err)
	return s
}

// A program that is restarted over and over keeps the pace, whether it ends well or is killed.
// Source: resilience4j/resilience4j#2069, jhurliman/node-rate-limiter#34, #83, bencherdev/bencher#1004,
// animir/node-rate-limiter-flexible#361, tashfeenahmed/freellmapi#88.
func TestCaseK15_RestartLoop(t *testing.T) {
	seconds := func(s ...time.Duration) []time.Duration {
		for i := range s {
			s[i] *= time.Second
		}
		return s
	}
	for name, test := range map[string]struct {
		killed bool
		hold   time.Duration
		want   []time.Duration
	}{
		"ends":                {want: seconds(0, 10, 20, 30, 40, 50)},
		"killed":              {killed: true, want: seconds(0, 10, 20, 30, 40, 50)},
		"ends, with a hold":   {hold: 36 * time.Second, want: seconds(0, 36, 46, 56)},
		"killed, with a hold": {killed: true, hold: 36 * time.Second, want: seconds(0, 36, 46, 56)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pace")
				begin := time.Now()
				var left []time.Duration
				for process := range 20 {
					pace := newShaper(t, scheduler.Per(1, 10*time.Second))
					kept, err := statefile.Keep(path, pace, 100*time.Millisecond)
					require.NoError(t, err)
					for range 5 {
						_, err := pace.Enqueue(shaper.Call{}, func(err error) {
							if err == nil {
								left = append(left, time.Since(begin))
							}
						})
						require.NoError(t, err)
					}
					if process == 0 && test.hold > 0 {
						pace.HoldUntil(begin.Add(test.hold))
					}
					time.Sleep(2990 * time.Millisecond)
					last, err := os.ReadFile(path)
					require.NoError(t, err)
					require.NoError(t, pace.Close())
					require.NoError(t, kept.Close())
					if test.killed { // what it did at its end has not happened
						require.NoError(t, os.WriteFile(path, last, 0o600))
					}
				}
				assert.Equal(t, test.want, left)
			})
		})
	}
}

func TestKeysOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys")
		group := func() (*shaper.Group[string], *statefile.File) {
			g, err := shaper.NewGroup[string](scheduler.Per(1, time.Minute))
			require.NoError(t, err)
			kept, err := statefile.Keep(path, g, time.Second)
			require.NoError(t, err)
			return g, kept
		}
		g, kept := group()
		assert.True(t, g.Allow("a"))
		require.NoError(t, g.HoldUntil("b", time.Now().Add(time.Hour)))
		require.NoError(t, g.Close())
		require.NoError(t, kept.Close())
		time.Sleep(10 * time.Second)
		g, kept = group()
		assert.False(t, g.Allow("a"))
		assert.False(t, g.Allow("b"))
		assert.True(t, g.Allow("c"))
		time.Sleep(time.Minute)
		assert.True(t, g.Allow("a"))
		assert.False(t, g.Allow("b"))
		require.NoError(t, g.Close())
		require.NoError(t, kept.Close())
	})
}

// It is saved when something has changed, and not otherwise.
func TestSavesWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pace")
		pace := newShaper(t, scheduler.Per(1, time.Minute))
		kept, err := statefile.Keep(path, pace, time.Second)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		time.Sleep(10 * time.Second)
		assert.NoFileExists(t, path)
		require.True(t, pace.Allow())
		time.Sleep(time.Second)
		synctest.Wait()
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		assert.NoFileExists(t, path+".tmp")
		require.NoError(t, kept.Close())
		require.NoError(t, kept.Close())
	})
}

func TestErrors(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "pace")
	pace := newShaper(t, scheduler.PerSecond(1))
	assert.NoError(t, statefile.Load(path, pace), "there is none yet")
	_, err := statefile.Keep(path, pace, 0)
	assert.EqualError(t, err, "statefile: save every 0s: must be positive")
	_, err = statefile.Keep(filepath.Join(folder, "none", "pace"), pace, time.Second)
	assert.ErrorIs(t, err, os.ErrNotExist)

	// A damaged file stops the program rather than be replaced.
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	_, err = statefile.Keep(path, pace, time.Second)
	require.Error(t, err)
	assert.ErrorContains(t, err, path)
	damaged, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "damaged", string(damaged))

	// What a kill has left behind while the file was written is not read.
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path+".tmp", []byte("half of"), 0o600))
	kept, err := statefile.Keep(path, pace, time.Hour)
	require.NoError(t, err)
	require.NoError(t, kept.Close())

	boom := errors.New("boom")
	_, err = statefile.Keep(filepath.Join(folder, "broken"), broken{boom}, time.Second)
	assert.ErrorIs(t, err, boom)
}

type broken struct{ err error }

func (b broken) MarshalBinary() ([]byte, error) { return nil, b.err }
func (b broken) UnmarshalBinary([]byte) error   { return b.err }
