package redis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// outage returns how much longer than needed servers are away: SLUICE_OUTAGE, or nothing.
func outage(t testing.TB) time.Duration {
	t.Helper()
	s := os.Getenv("SLUICE_OUTAGE")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

// shifted is the clock of a machine that is wrong by a constant.
type shifted struct {
	clock.Clock
	by time.Duration
}

func skewed(by time.Duration) clock.Clock { return shifted{clock.New(), by} }

func (s shifted) Now() time.Time                  { return s.Clock.Now().Add(s.by) }
func (s shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s shifted) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }

// A job is what a process of a test does.
type job struct {
	Addr      string
	PerSecond int64
	Processes int
	Skew      time.Duration
	Workers   int
	Timeout   time.Duration
}

const jobEnv = "SLUICE_TEST_JOB"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		if err := runJob(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runJob sends all it can until its input ends, and prints each departure.
func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	c := goredis.NewClient(&goredis.Options{Addr: j.Addr})
	sched, err := redis.New(c, "job", scheduler.PerSecond(j.PerSecond), 1, redis.FailLocal(j.Processes),
		redis.WithSkew(j.Skew), redis.WithTimeout(j.Timeout))
	if err != nil {
		return err
	}
	watched := redis.Watch(sched, j.Skew)
	s, err := redis.NewShaper(watched, shaper.WithClock(skewed(j.Skew)))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var printing sync.Mutex
	var all sync.WaitGroup
	for range j.Workers {
		all.Go(func() {
			for s.Wait(ctx) == nil {
				printing.Lock()
				for _, d := range watched.Take() {
					fmt.Println(d.At.UnixNano(), d.Late.Nanoseconds(), d.Alone)
				}
				printing.Unlock()
			}
		})
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	stop()
	all.Wait()
	return s.Close()
}

// A running is a process that does a job.
type running struct {
	end func() // ends it, and returns when all that it printed has been read

	mu   sync.Mutex
	left []redis.Departure
}

// start runs a job in a process of its own.
func (j job) start(t *testing.T) *running {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GORACE=atexit_sleep_ms=10")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &running{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(t, out)
	}()
	p.end = sync.OnceFunc(func() {
		_ = in.Close()
		<-read
		assert.NoError(t, cmd.Wait())
	})
	t.Cleanup(p.end)
	return p
}

func (p *running) read(t *testing.T, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var at, late int64
		var alone bool
		if _, err := fmt.Sscan(lines.Text(), &at, &late, &alone); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
			continue
		}
		p.mu.Lock()
		p.left = append(p.left, redis.Departure{At: time.Unix(0, at), Late: time.Duration(late), Alone: alone})
		p.mu.Unlock()
	}
}

func (p *running) departures() []redis.Departure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.left)
}

// between returns those of an ordered list that lie in a span.
func between(left []time.Time, from, to time.Time) []time.Time {
	var in []time.Time
	for _, at := range left {
		if !at.Before(from) && !at.After(to) {
			in = append(in, at)
		}
	}
	return in
}

// Four processes, clocks that are wrong by up to 5 s, a server that forgets its scripts,
// hangs and dies: what leaves keeps the limit, and all go on in each state. The rates are
// those of TestFourShareThroughOutages. SLUICE_OUTAGE=10s makes the outages longer by that.
func TestFourProcesses(t *testing.T) {
	srv := realServer(t)
	c := client(t, srv.Addr)
	r := scheduler.PerSecond(100)
	var processes []*running
	for _, skew := range []time.Duration{5 * time.Second, -5 * time.Second, 0, 3 * time.Second} {
		processes = append(processes, job{Addr: srv.Addr, PerSecond: 100, Processes: 4, Skew: skew, Workers: 20, Timeout: 500 * ms}.start(t))
	}
	// awaitMore waits until each of them has let n more leave, alone or in slots.
	awaitMore := func(n int, alone bool) {
		t.Helper()
		count := func(p *running) (n int) {
			for _, d := range p.departures() {
				if d.Alone == alone {
					n++
				}
			}
			return n
		}
		had := make([]int, len(processes))
		for i, p := range processes {
			had[i] = count(p)
		}
		for i, p := range processes {
			require.Eventually(t, func() bool { return count(p) >= had[i]+n }, eventually, 5*ms)
		}
	}
	awaitMore(20, false)
	kill := func() { require.NoError(t, srv.Kill()) }
	for _, away := range []struct {
		begin func()
		end   func() error
	}{{kill, srv.Run}, {func() { stop(t, srv) }, srv.Continue}} {
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		awaitMore(20, false)
		away.begin()
		awaitMore(10, true)
		time.Sleep(outage(t))
		require.NoError(t, away.end())
		awaitMore(20, false)
	}
	var merged []redis.Departure
	for _, p := range processes {
		p.end()
		left := p.departures()
		assertAlone(t, left, scheduler.PerSecond(25))
		merged = append(merged, left...)
	}
	assertShared(t, merged, r, 1)
}
