package precise

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

func TestAvailable(t *testing.T) {
	require.True(t, Available())
	require.Same(t, shared(), New(func() {}).r)
}

// A probe is an Alarm that knows what it was set for.
type probe struct {
	*Alarm
	mu    sync.Mutex
	floor time.Time // nothing that was set since the last firing was due earlier
	early int
	fired int
}

func newProbe(r *releaser) *probe {
	p := &probe{}
	p.Alarm = newAlarm(r, func() {
		now := time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fired++
		if now.Before(p.floor) {
			p.early++
		}
		p.floor = time.Time{}
	})
	return p
}

func (p *probe) set(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(d); p.floor.IsZero() || at.Before(p.floor) {
		p.floor = at
	}
	p.Set(d)
}

// settle forgets the past; nothing may be set or about to fire.
func (p *probe) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired, p.floor = 0, time.Time{}
}

func (p *probe) count() (fired, early int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired, p.early
}

// Hundreds of Alarms, set, set anew and stopped by many goroutines at once: none fires
// early, and each fires once for what was set last.
func TestOnceAndNeverEarly(t *testing.T) { trial.Run(t, 1, onceAndNeverEarly) }

func onceAndNeverEarly(t *testing.T, rng *rand.Rand) {
	const workers = 4
	seed := rng.Uint64()
	r := newReleaser()
	probes := make([]*probe, 400)
	for i := range probes {
		probes[i] = newProbe(r)
	}
	together := func(work func(rnd *rand.Rand, mine []*probe)) {
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				// Each worker has some to itself and shares others with its neighbour.
				n := len(probes) / workers
				mine := slices.Concat(probes[i*n:(i+1)*n], probes[(i+1)%workers*n:][:n/2])
				work(rnd, mine)
			})
		}
		wg.Wait()
	}
	delay := func(rnd *rand.Rand) time.Duration { return time.Duration(rnd.Int64N(int64(20 * time.Millisecond))) }

	together(func(rnd *rand.Rand, mine []*probe) {
		for range 3000 {
			p := mine[rnd.IntN(len(mine))]
			if rnd.IntN(4) == 0 {
				p.Stop()
			} else {
				p.set(delay(rnd))
			}
		}
	})

	for _, p := range probes {
		p.Stop()
	}
	flush(t, r)
	for _, p := range probes {
		_, early := p.count()
		require.Zero(t, early)
		p.settle()
	}

	// What is stopped now was set for so late that it cannot have fired before.
	stopped := func(i int) bool { return i%3 == 0 }
	for i, p := range probes {
		if stopped(i) {
			p.Set(time.Hour)
		}
	}
	together(func(rnd *rand.Rand, mine []*probe) {
		for _, p := range mine[:len(probes)/workers] {
			if i := slices.Index(probes, p); stopped(i) {
				p.Stop()
			} else {
				p.Set(time.Hour)
				p.set(delay(rnd))
			}
		}
	})
	eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.due) == 0
	})
	flush(t, r)
	for i, p := range probes {
		fired, early := p.count()
		want := 1
		if stopped(i) {
			want = 0
		}
		require.Equal(t, want, fired, "alarm %d", i)
		require.Zero(t, early)
	}
}

// No wake-up is lost, wherever the release goroutine stands when an Alarm is set: each
// is set as soon as it has fired, from another goroutine. With a linger this short the
// release goroutine ends and starts again all the time.
func TestNoWakeUpIsLost(t *testing.T) {
	for name, linger := range map[string]time.Duration{
		"lingers": defaultLinger,
		"ends":    20 * time.Microsecond,
	} {
		t.Run(name, func(t *testing.T) { trial.Run(t, 1, noWakeUpIsLost(linger)) })
	}
}

func noWakeUpIsLost(linger time.Duration) func(t *testing.T, rng *rand.Rand) {
	return func(t *testing.T, rng *rand.Rand) {
		seed := rng.Uint64()
		r := newReleaser()
		r.linger = linger
		for _, workers := range []int{1, 4} {
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(i)))
					c := make(chan time.Time, 1)
					a := newAlarm(r, func() { c <- time.Now() })
					for range 1500 {
						d := time.Duration(rnd.Int64N(int64(100 * time.Microsecond)))
						if rnd.IntN(8) == 0 {
							d = 0
						}
						at := time.Now().Add(d)
						a.Set(d)
						select {
						case now := <-c:
							if now.Before(at) {
								t.Errorf("early by %v", at.Sub(now))
								return
							}
						case <-time.After(patience):
							t.Error("a wake-up was lost")
							return
						}
					}
				})
			}
			wg.Wait()
		}
	}
}

// An Alarm that is set for earlier than all others does not wait for them, and one that
// its own function sets goes on.
func TestEarlierAndAgain(t *testing.T) {
	r := newReleaser()
	far := newAlarm(r, func() { t.Error("fired an hour early") })
	far.Set(time.Hour)
	defer far.Stop()
	flush(t, r)

	c := make(chan struct{})
	n := 0
	var a *Alarm
	a = newAlarm(r, func() {
		if n++; n == 100 {
			close(c)
			return
		}
		a.Set(50 * time.Microsecond)
	})
	a.Set(time.Millisecond)
	await(t, c)
}

// However many are set while others fire, the timer is armed once: when they have
// fired, and counting from then.
func TestArmedOncePerPass(t *testing.T) {
	r := newReleaser()
	flush(t, r)
	eventually(t, func() bool { return stateOf(r) == asleep })
	armed := func() int64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.armed
	}
	release := block(t, r)
	before := armed()
	a := newAlarm(r, func() {})
	for range 3 {
		a.Set(time.Hour)
		a.Set(time.Minute)
		a.Stop()
		require.Equal(t, before, armed())
	}
	end := sinceEpoch()
	release()
	eventually(t, func() bool { return stateOf(r) == asleep })
	require.GreaterOrEqual(t, armed(), after(end, r.linger))
}

// Those that are due together fire in the order in which they were due.
func TestOrder(t *testing.T) { trial.Run(t, 1, firesInOrder) }

func firesInOrder(t *testing.T, rnd *rand.Rand) {
	r := newReleaser()
	release := block(t, r)
	var got, want []int64
	var all []*Alarm
	for range 100 {
		var a *Alarm
		a = newAlarm(r, func() { got = append(got, a.at) })
		a.Set(time.Duration(rnd.Int64N(int64(time.Millisecond))))
		all = append(all, a)
	}
	for _, a := range all[:30] {
		a.Set(time.Duration(rnd.Int64N(int64(time.Millisecond))))
	}
	for _, a := range all {
		want = append(want, a.at)
	}
	slices.Sort(want)
	c := make(chan struct{})
	newAlarm(r, func() { close(c) }).Set(2 * time.Millisecond)
	release()
	await(t, c)
	require.Equal(t, want, got)
}

// What a function of an Alarm does to another counts, though both were due.
func TestFireStopsAndSetsOthers(t *testing.T) {
	r := newReleaser()
	release := block(t, r)
	stopped := newAlarm(r, func() { t.Error("it was stopped") })
	moved := newAlarm(r, func() { t.Error("it was set for later") })
	newAlarm(r, func() {
		stopped.Stop()
		moved.Set(time.Hour)
	}).Set(0)
	stopped.Set(time.Nanosecond)
	moved.Set(time.Nanosecond)
	release()
	flush(t, r)
	moved.Stop()
}

// Nothing remains of a process that sets no Alarm, and it can begin again.
func TestIdle(t *testing.T) {
	r := newReleaser()
	for name, use := range map[string]func(){
		"fired":   func() { flush(t, r) },
		"stopped": func() { a := newAlarm(r, func() {}); a.Set(time.Hour); flush(t, r); a.Stop() },
		"stopped while asleep": func() {
			a := newAlarm(r, func() {})
			a.Set(time.Hour)
			eventually(t, func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.goroutine == asleep && r.armed == a.at-r.lead.ns
			})
			a.Stop()
		},
		"stopped at once": func() { a := newAlarm(r, func() {}); a.Set(time.Hour); a.Stop() },
		"unused":          func() { newAlarm(r, func() {}).Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			use()
			eventually(t, func() bool { return goroutines() == 0 })
		})
	}
}

// Work that pauses for less than the linger keeps its goroutine.
func TestLinger(t *testing.T) {
	r := newReleaser()
	r.linger = time.Hour
	for range 3 {
		flush(t, r)
		eventually(t, func() bool { return stateOf(r) != awake })
		require.Equal(t, asleep, stateOf(r))
	}
	r.mu.Lock()
	r.failLocked(sinceEpoch())
	r.mu.Unlock()
	eventually(t, func() bool { return goroutines() == 0 })
}

func TestGoexit(t *testing.T) {
	r := newReleaser()
	release := block(t, r)
	newAlarm(r, runtime.Goexit).Set(0)
	c := make(chan struct{})
	newAlarm(r, func() { close(c) }).Set(time.Nanosecond)
	release()
	await(t, c)
	flush(t, r)
}

// If the kernel refuses, plain timers take over, for what is set already too.
func TestFailure(t *testing.T) {
	for name, fail := range map[string]func(r *releaser){
		"settime": func(r *releaser) {
			r.mu.Lock()
			r.timer.fd = -1
			r.mu.Unlock()
			newAlarm(r, func() {}).Set(0)
		},
		"poller": func(r *releaser) { r.timer.interrupt() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReleaser()
			require.True(t, r.works())
			c := make(chan time.Time, 1)
			first := newAlarm(r, func() { c <- time.Now() })
			stopped := newAlarm(r, func() { t.Error("it was stopped") })
			far := newAlarm(r, func() { t.Error("fired an hour early") })
			far.Set(time.Hour)
			at := time.Now().Add(50 * time.Millisecond)
			first.Set(50 * time.Millisecond)
			stopped.Set(time.Hour)
			// The goroutine may be anywhere; asleep is what interrupt must reach.
			eventually(t, func() bool { return stateOf(r) == asleep })
			fail(r)
			eventually(t, func() bool { return !r.works() })
			stopped.Stop()
			require.False(t, (<-c).Before(at))
			eventually(t, func() bool { return goroutines() == 0 })

			first.Set(time.Nanosecond)
			await(t, c)
			flush(t, r)
			far.Stop()
		})
	}
}

// Without a descriptor there are plain timers from the start.
func TestNoDescriptor(t *testing.T) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	tight := limit
	tight.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &tight))
	r := newReleaser()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.False(t, r.works())
	flush(t, r)
}

// An Alarm that is not set does not keep its owner from being collected.
func TestCollected(t *testing.T) {
	type owner struct{ alarm *Alarm }
	for name, use := range map[string]func(t *testing.T, r *releaser, a *Alarm){
		"stopped": func(_ *testing.T, _ *releaser, a *Alarm) { a.Set(time.Hour); a.Stop() },
		"fired":   func(t *testing.T, r *releaser, a *Alarm) { a.Set(0); flush(t, r) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReleaser()
			// The goroutine stays, and what its stack refers to.
			far := newAlarm(r, func() {})
			far.Set(time.Hour)
			var collected atomic.Bool
			func() {
				o := &owner{}
				o.alarm = newAlarm(r, func() { runtime.KeepAlive(o) })
				runtime.AddCleanup(o, func(struct{}) { collected.Store(true) }, struct{}{})
				use(t, r, o.alarm)
			}()
			eventually(t, func() bool {
				runtime.GC()
				return collected.Load()
			})
			far.Stop()
		})
	}
}
