package redis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// outage returns how long servers are away: SLUICE_OUTAGE, or a second and a half.
func outage(t testing.TB) time.Duration {
	t.Helper()
	s := os.Getenv("SLUICE_OUTAGE")
	if s == "" {
		return 1500 * ms
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

// runJob sends all it can until its input ends, and then prints when each call left, by
// the true clock.
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
	s, err := redis.NewShaper(sched, shaper.WithClock(skewed(j.Skew)), shaper.WithQueue(1<<20))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var left []int64
	var all sync.WaitGroup
	for range j.Workers {
		all.Go(func() {
			var mine []int64
			for s.Wait(ctx) == nil {
				mine = append(mine, time.Now().UnixNano())
			}
			mu.Lock()
			defer mu.Unlock()
			left = append(left, mine...)
		})
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	stop()
	all.Wait()
	fmt.Fprintf(os.Stderr, "%+v\n", sched.Stats())
	out := bufio.NewWriter(os.Stdout)
	for _, at := range left {
		fmt.Fprintln(out, at)
	}
	return out.Flush()
}

// start runs a job in a process of its own. What it returns ends it and tells when calls
// left.
func (j job) start(t *testing.T) func() []time.Time {
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
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return func() []time.Time {
		require.NoError(t, in.Close())
		var left []time.Time
		for lines := bufio.NewScanner(out); lines.Scan(); {
			ns, err := strconv.ParseInt(lines.Text(), 10, 64)
			require.NoError(t, err, lines.Text())
			left = append(left, time.Unix(0, ns))
		}
		require.NoError(t, cmd.Wait())
		sortTimes(left)
		return left
	}
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
// hangs and dies. SLUICE_OUTAGE=10s makes the outages that long.
func TestFourProcesses(t *testing.T) {
	srv := realServer(t)
	c := client(t, srv.Addr)
	const processes = 4
	r := scheduler.PerSecond(100)
	// A round trip, and goroutines and processes that come late, on a busy machine.
	const slack = 60 * ms
	var ends []func() []time.Time
	for i := range processes {
		skew := []time.Duration{5 * time.Second, -5 * time.Second, 0, 3 * time.Second}[i]
		ends = append(ends, job{Addr: srv.Addr, PerSecond: 100, Processes: processes, Skew: skew, Workers: 20, Timeout: 200 * ms}.start(t))
	}
	for c.DBSize(t.Context()).Val() == 0 {
		time.Sleep(ms)
	}
	type span struct{ from, to time.Time }
	var up, down []span
	phase := func(d time.Duration) {
		from := time.Now()
		time.Sleep(d / 2)
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		time.Sleep(d / 2)
		up = append(up, span{from, time.Now()})
	}
	time.Sleep(500 * ms)
	phase(2 * time.Second)
	for _, away := range []struct{ begin, end func() error }{{srv.Stop, srv.Continue}, {srv.Kill, srv.Run}} {
		from := time.Now()
		require.NoError(t, away.begin())
		time.Sleep(outage(t))
		to := time.Now()
		require.NoError(t, away.end())
		down = append(down, span{from, to})
		time.Sleep(time.Second)
		phase(2 * time.Second)
	}

	var merged []time.Time
	each := make([][]time.Time, processes)
	for i, end := range ends {
		each[i] = end()
		merged = append(merged, each[i]...)
	}
	sortTimes(merged)
	for i, u := range up {
		in := between(merged, u.from, u.to)
		assertConforms(t, in, r, 1, 5*ms+slack)
		t.Logf("up %d: %d in %v", i, len(in), u.to.Sub(u.from))
		assert.Greater(t, float64(len(in)), 0.85*100*u.to.Sub(u.from).Seconds())
		for k := range each {
			share := float64(len(between(each[k], u.from, u.to))) / float64(len(in))
			assert.InDelta(t, 0.25, share, 0.05, "process %d", k)
		}
	}
	for i, d := range down {
		// All have noticed after their timeout and what they had in hand.
		from := d.from.Add(400 * ms)
		for k := range each {
			in := between(each[k], from, d.to)
			t.Logf("down %d: process %d: %d in %v", i, k, len(in), d.to.Sub(from))
			assertConforms(t, in, scheduler.PerSecond(25), 1, 5*ms+slack)
		}
		in := between(merged, from, d.to)
		assert.Greater(t, float64(len(in)), 0.7*100*d.to.Sub(from).Seconds())
	}
	// From the first to the last, with all comings and goings: one more for each process
	// that went its own way.
	assertConforms(t, merged, r, 1+processes, 5*ms+slack)
}

// At full load Redis sees one step per run.
func TestStepsPerCall(t *testing.T) {
	srv := realServer(t)
	c := client(t, srv.Addr)
	var ends []func() []time.Time
	for range 4 {
		ends = append(ends, job{Addr: srv.Addr, PerSecond: 10_000, Processes: 4, Workers: 1000, Timeout: time.Second}.start(t))
	}
	for c.DBSize(t.Context()).Val() == 0 {
		time.Sleep(ms)
	}
	time.Sleep(500 * ms)
	from, before := time.Now(), calls(t, c, "evalsha", "eval")
	time.Sleep(time.Second)
	to, after := time.Now(), calls(t, c, "evalsha", "eval")
	var left int
	for _, end := range ends {
		left += len(between(end(), from, to))
	}
	seconds := to.Sub(from).Seconds()
	t.Logf("%.0f calls/s, %.0f steps/s", float64(left)/seconds, float64(after-before)/seconds)
	assert.LessOrEqual(t, float64(after-before)/seconds, 200.0)
	assert.Greater(t, float64(left)/seconds, 5000.0)
}
