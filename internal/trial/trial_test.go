package trial

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fake is a test that may fail.
type fake struct {
	failed, skipped bool
	log             []string
}

func (f *fake) Helper()                         {}
func (f *fake) Name() string                    { return "TestFake/a+b's" }
func (f *fake) Failed() bool                    { return f.failed }
func (f *fake) Skipped() bool                   { return f.skipped }
func (f *fake) Logf(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

// line is how run n of seed 7 of the fake is repeated.
func line(n int) string {
	return fmt.Sprintf("to repeat this run: SLUICE_SEED=7 SLUICE_RUN=%d "+
		`go test github.com/sluice-go/sluice/internal/trial -run '^TestFake$/^a\+b'\''s$'`, n)
}

func TestTheLineOfTheFirstRunThatFails(t *testing.T) {
	for name, end := range map[string]func(*fake){
		"error":  func(f *fake) { f.failed = true },
		"fatal":  func(f *fake) { f.failed = true; runtime.Goexit() },
		"goexit": func(*fake) { runtime.Goexit() },
		"panic":  func(*fake) { panic("planted") },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			runs := 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recover() }()
				plan{seed: 7, end: 10}.execute(f, func(*rand.Rand) {
					runs++
					if runs == 4 {
						end(f)
					}
				})
			}()
			<-done
			assert.Equal(t, 4, runs)
			assert.Equal(t, []string{line(3)}, f.log)
		})
	}
}

func TestNothingIsLoggedWithoutAFailure(t *testing.T) {
	f := &fake{}
	runs := 0
	plan{seed: 7, end: 10}.execute(f, func(*rand.Rand) { runs++ })
	assert.Equal(t, 10, runs)
	assert.Empty(t, f.log)

	done := make(chan struct{})
	go func() {
		defer close(done)
		plan{seed: 7, end: 10}.execute(f, func(*rand.Rand) { f.skipped = true; runtime.Goexit() })
	}()
	<-done
	assert.Empty(t, f.log)
}

func TestARunCanBeRepeatedAlone(t *testing.T) {
	var drawn []uint64
	draw := func(rng *rand.Rand) { drawn = append(drawn, rng.Uint64()) }
	plan{seed: 7, end: 10}.execute(&fake{}, draw)
	all := drawn
	drawn = nil

	p, err := newPlan(10, environment{seedVar: "7", runVar: "3"}.get)
	require.NoError(t, err)
	p.execute(&fake{}, draw)
	assert.Equal(t, all[3:4], drawn)
	assert.Equal(t, rand.NewPCG(7, 3).Uint64(), drawn[0])
}

type environment map[string]string

func (e environment) get(name string) string { return e[name] }

func TestThePlan(t *testing.T) {
	for _, tt := range []struct {
		env  environment
		want plan
	}{
		{environment{seedVar: "18446744073709551615"}, plan{1<<64 - 1, 0, 100}},
		{environment{seedVar: "1", runsVar: "1000000"}, plan{1, 0, 1_000_000}},
		{environment{seedVar: "1", runVar: "2770"}, plan{1, 2770, 2771}},
		{environment{seedVar: "1", runVar: "2770", runsVar: "5"}, plan{1, 2770, 2771}},
	} {
		got, err := newPlan(100, tt.env.get)
		require.NoError(t, err, tt.env)
		assert.Equal(t, tt.want, got, tt.env)
	}
	first, err := newPlan(100, environment{}.get)
	require.NoError(t, err)
	second, err := newPlan(100, environment{}.get)
	require.NoError(t, err)
	assert.NotEqual(t, first.seed, second.seed)

	for _, name := range []string{seedVar, runVar, runsVar} {
		_, err := newPlan(100, environment{name: "-1"}.get)
		assert.EqualError(t, err, "trial: "+name+`="-1" is not a number`)
	}
}

func TestShortRunsFewer(t *testing.T) {
	t.Setenv(runVar, "")
	t.Setenv(runsVar, "")
	runs := 0
	Run(t, 16, func(*testing.T, *rand.Rand) { runs++ })
	want := 16
	if testing.Short() {
		want = 2
	}
	assert.Equal(t, want, runs)
}
