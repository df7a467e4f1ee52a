package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is in hand through a hold is not given out twice, and what is given back is not lost. Source:
// nats-io/nats.go#1929, nats-io/nats.js#218, celery/celery#9663, #2541, zulip/zulip#20243,
// aws/aws-lambda-go#289.
func TestCaseK06_NoneIsGivenOutTwice(t *testing.T) {
	for name, test := range map[string]struct {
		T, fetch, hold time.Duration
		messages       int
	}{
		"a slow pace": {T: 10 * time.Second, fetch: ms, messages: 12},
		"a hold":      {T: 10 * time.Second, fetch: 20 * ms, hold: 60 * time.Second, messages: 12},
		"a fast pace": {T: 100 * ms, fetch: 20 * ms, messages: 1000},
		"far":         {T: 10 * ms, fetch: 200 * ms, hold: 60 * time.Second, messages: 3000},
	} {
		for _, keeps := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					line := lineOf(t, test.T)
					b := newBroker(line, test.messages)
					b.fetch, b.lease = test.fetch, 30*time.Second
					if test.hold > 0 {
						time.AfterFunc(5*time.Second, func() { line.HoldUntil(time.Now().Add(test.hold)) })
					}
					if test.hold > 0 {
						time.AfterFunc(30*time.Second, func() {
							b.mu.Lock()
							defer b.mu.Unlock()
							inHand := b.taken - int(b.left()) - len(b.returned)
							if !keeps {
								assert.Zero(t, inHand, "given back")
							} else if test.fetch > test.T {
								assert.Greater(t, inHand, 10)
								assert.GreaterOrEqual(t, b.extended, 2*inHand)
							}
						})
					}
					var source queue.Source = b
					if keeps {
						source = keeper{b}
					}
					require.NoError(t, queue.Drain(t.Context(), line, source, queue.WithWorkers(10)))
					assert.Empty(t, b.twice())
					assert.Len(t, b.started, test.messages)
					assert.Len(t, b.done, test.messages)
					assert.EqualValues(t, test.messages, line.Stats().Left, "a slot for each")
					ideal := test.hold + time.Duration(test.messages)*test.T
					assert.LessOrEqual(t, time.Since(b.begin), ideal*103/100+2*test.fetch)
				})
			})
		}
	}
}

// A keeper is a broker whose messages cannot be given back.
type keeper struct{ *broker }

func (k keeper) Take(ctx context.Context, n int) ([]queue.Message, error) {
	messages, err := k.broker.Take(ctx, n)
	for i, m := range messages {
		messages[i] = kept{m.(*letter)}
	}
	return messages, err
}

type kept struct{ l *letter }

func (k kept) Run(ctx context.Context) error    { return k.l.Run(ctx) }
func (k kept) Lease() time.Duration             { return k.l.Lease() }
func (k kept) Extend(ctx context.Context) error { return k.l.Extend(ctx) }
func (k kept) Done(ctx context.Context) error   { return k.l.Done(ctx) }

// A slot is for a message, not for a look. Source: triggerdotdev/trigger.dev#3166,
// OptimalBits/bull#940.
func TestCaseK07_ASlotForEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := newShaper(t, scheduler.PerSecond(10))
		j := newJournal()
		ctx, cancel := context.WithCancel(t.Context())
		var drains errorLog
		for i := range 20 {
			var arrive []time.Duration
			if i == 19 {
				arrive = []time.Duration{50 * ms, 5050 * ms, 5050 * ms, 5050 * ms}
			}
			go func() { drains.handle(queue.Drain(ctx, line, newFeed(j, arrive...))) }()
		}
		time.Sleep(10 * time.Second)
		cancel()
		synctest.Wait()
		_, at := j.starts()
		assert.Equal(t, []time.Duration{50 * ms, 5050 * ms, 5150 * ms, 5250 * ms}, at)
		assert.EqualValues(t, 4, line.Stats().Left)
		assert.Len(t, drains.all(), 20)
	})
}

// A stop ends the taking, gives back at once what waits, and lets run what runs. Source:
// riverqueue/river#1239, hibiken/asynq#17, OpenFn/kit#934, bensheldon/good_job#213.
func TestCaseK14_SoftStopOfDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineOf(t, 10*time.Second)
		b := newBroker(line, 20)
		b.lease = 30 * time.Second
		b.run = func(ctx context.Context, id int) error {
			lasts := 5 * time.Second
			if id == 0 {
				lasts = 25 * time.Second
			}
			select {
			case <-time.After(lasts):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, queue.Drain(ctx, line, b, queue.WithWorkers(2)))
		assert.Equal(t, 25*time.Second, time.Since(b.begin), "it waits for what runs")
		assert.Equal(t, []int{1, 0}, b.done)
		assert.Len(t, b.ready, 18)
		assert.Empty(t, b.twice())
	})
	// The jobs have a context of their own.
	synctest.Test(t, func(t *testing.T) {
		line := lineOf(t, 10*time.Second)
		b := newBroker(line, 2)
		b.run = func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		jobs, cut := context.WithTimeout(t.Context(), 15*time.Second)
		defer cut()
		var l errorLog
		assert.Equal(t, context.DeadlineExceeded, queue.Drain(ctx, line, b, queue.WithWorkers(2), queue.WithJobContext(jobs), queue.WithErrorHandler(l.handle)))
		assert.Equal(t, 15*time.Second, time.Since(b.begin))
		assert.Equal(t, []error{context.DeadlineExceeded, context.DeadlineExceeded}, l.all())
		assert.Len(t, b.returned, 2, "what was cut is given back")
	})
}

// ending is a broker that can say that there will be no more while it is not asked.
type ending struct{ *broker }

func (e ending) Ended() <-chan struct{} { return e.ended }

// An end of the source is noticed while messages wait, or the line is held.
func TestDrainNoticesTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		messages  int
		held      bool
		over      time.Duration
		wantStart int
	}{
		"nothing waits":  {over: time.Second},
		"the line held":  {messages: 3, held: true, over: time.Second},
		"a message runs": {messages: 1, over: time.Second, wantStart: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line := lineOf(t, time.Hour)
				b := newBroker(line, test.messages)
				b.endless, b.ended = true, make(chan struct{})
				if test.held {
					line.HoldUntil(time.Now().Add(time.Hour))
				}
				time.AfterFunc(time.Second, func() { close(b.ended) })
				require.NoError(t, queue.Drain(t.Context(), line, ending{b}))
				assert.Equal(t, test.over, time.Since(b.begin))
				assert.Len(t, b.started, test.wantStart)
			})
		})
	}
	// io.EOF that comes with the last messages: they run, and then it is over.
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		f := newFeed(j, 0, 0, 0)
		f.end = io.EOF
		require.NoError(t, queue.Drain(t.Context(), lineOf(t, time.Second), f))
		_, at := j.starts()
		assert.Equal(t, every(0, time.Second, 3), at)
	})
}

// What Run returns decides what becomes of a message.
func TestDrainSettlesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineOf(t, time.Second)
		b := newBroker(line, 6)
		tries := map[int]int{}
		boom := errors.New("boom")
		b.run = func(_ context.Context, id int) error {
			if tries[id]++; tries[id] > 1 {
				return nil
			}
			switch id {
			case 1:
				return boom
			case 2:
				return queue.Dead(boom)
			case 3:
				panic("a bug")
			case 4:
				runtime.Goexit()
			case 5:
				return queue.Again(3 * time.Second)
			}
			return nil
		}
		var l errorLog
		require.NoError(t, queue.Drain(t.Context(), line, b, queue.WithErrorHandler(l.handle)))
		assert.ElementsMatch(t, []int{0, 1, 3, 4, 5}, b.done)
		assert.Equal(t, []int{1, 3, 4}, b.returned)
		assert.Equal(t, map[int]error{2: boom}, b.dead)
		assert.Equal(t, 2, tries[5])
		assert.EqualValues(t, 10, line.Stats().Left, "a slot for each run")
		require.Len(t, l.all(), 4)
		assert.Equal(t, boom, l.all()[0])
		assert.ErrorIs(t, l.all()[1], boom)
		assert.ErrorIs(t, l.all()[3], queue.ErrGoexit)
	})
}

// How a drain ends, and with which error.
func TestDrainErrors(t *testing.T) {
	boom := errors.New("boom")
	line := func(t *testing.T) *shaper.Shaper { return lineOf(t, time.Second) }
	source := func(take func(ctx context.Context) (queue.Job, error)) queue.Source { return queue.Next(take) }
	for name, test := range map[string]struct {
		source queue.Source
		opts   []queue.Option
		is     error
		text   string
	}{
		"a failed source":   {source: source(func(context.Context) (queue.Job, error) { return nil, boom }), is: boom, text: "queue: source: boom"},
		"wrapped io.EOF":    {source: source(func(context.Context) (queue.Job, error) { return nil, errors.Join(io.EOF) }), is: io.EOF, text: "queue: source: EOF"},
		"neither":           {source: source(func(context.Context) (queue.Job, error) { return nil, nil }), text: "queue: source: neither a job nor an error"},
		"a source's Goexit": {source: source(func(context.Context) (queue.Job, error) { runtime.Goexit(); return nil, nil }), is: queue.ErrGoexit},
		"a source's panic":  {source: source(func(context.Context) (queue.Job, error) { panic(boom) }), is: boom},
		"no source":         {text: "queue: nil source"},
		"an option of New":  {source: source(nil), opts: []queue.Option{queue.WithCapacity(3)}, text: "queue: capacity 3: not for Drain"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := queue.Drain(t.Context(), line(t), test.source, test.opts...)
				require.Error(t, err)
				if test.is != nil {
					assert.ErrorIs(t, err, test.is)
				}
				if test.text != "" {
					assert.EqualError(t, err, test.text)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := line(t)
		b := newBroker(s, 10)
		time.AfterFunc(2500*ms, func() { require.NoError(t, s.Close()) })
		assert.ErrorIs(t, queue.Drain(t.Context(), s, b), shaper.ErrClosed)
		assert.Len(t, b.done, 3)
		assert.Len(t, b.ready, 7)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b := newBroker(line(t), 10)
		assert.Equal(t, context.Canceled, queue.Drain(ctx, line(t), b))
		assert.Zero(t, b.takes)
	})
}

// frail messages have methods that fail, panic or call Goexit, and a handler that does the same.
type frail struct {
	fail  func() error
	calls *atomic.Int32
}

func (f frail) Run(context.Context) error    { return nil }
func (f frail) Done(context.Context) error   { f.calls.Add(1); return f.fail() }
func (f frail) Return(context.Context) error { f.calls.Add(1); return f.fail() }
func (f frail) Lease() time.Duration         { return 3 * time.Second }
func (f frail) Extend(context.Context) error { f.calls.Add(1); return f.fail() }

type frails []queue.Message

func (f *frails) Take(context.Context, int) ([]queue.Message, error) {
	all := *f
	*f = nil
	return all, io.EOF
}

// Whatever the methods of messages do, the drain ends.
func TestDrainOfFrailMessages(t *testing.T) {
	for _, fail := range []func() error{
		func() error { return io.ErrUnexpectedEOF },
		func() error { panic("a bug") },
		func() error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls, heard atomic.Int32
			f := frails{frail{fail, &calls}, frail{fail, &calls}, frail{fail, &calls}}
			err := queue.Drain(t.Context(), lineOf(t, 10*time.Second), &f, queue.WithErrorHandler(func(error) { heard.Add(1); fail() }))
			assert.NoError(t, err)
			assert.Positive(t, calls.Load())
			assert.Positive(t, heard.Load())
		})
	}
}

// A message whose lease has run out does not start.
func TestDrainOfLostLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineOf(t, 10*time.Second)
		b := newBroker(line, 3)
		b.lease = 3 * time.Second
		b.endless = true
		fails := lostSource{b}
		var l errorLog
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		line.HoldUntil(time.Now().Add(500 * ms)) // within a look, so nothing is given back
		require.Equal(t, context.DeadlineExceeded, queue.Drain(ctx, line, fails, queue.WithErrorHandler(l.handle)))
		assert.Equal(t, every(500*ms, 10*time.Second, 6), b.started, "others start in their slots")
		require.NotEmpty(t, l.all())
		unrun := 0
		for _, err := range l.all() {
			assert.ErrorContains(t, err, "Extend")
			if _, ok := errors.AsType[*queue.UnrunError[queue.Message]](err); ok {
				unrun++
			}
		}
		assert.Positive(t, unrun)
	})
}

// lostSource gives out two messages at once that cannot be extended.
type lostSource struct{ *broker }

func (s lostSource) Take(ctx context.Context, n int) ([]queue.Message, error) {
	messages, err := s.broker.Take(ctx, 2)
	for i, m := range messages {
		messages[i] = lost{m.(*letter), time.Now()}
	}
	return messages, err
}

type lost struct {
	l     *letter
	taken time.Time
}

func (k lost) Run(ctx context.Context) error {
	if age := time.Since(k.taken); age >= k.l.lease {
		return fmt.Errorf("started with a lease that ran out %v ago", age-k.l.lease)
	}
	return k.l.Run(ctx)
}
func (k lost) Lease() time.Duration         { return k.l.Lease() }
func (k lost) Extend(context.Context) error { return io.ErrUnexpectedEOF }

// generous gives out more than it is asked for.
type generous struct{ *broker }

func (g generous) Take(ctx context.Context, n int) ([]queue.Message, error) {
	return g.broker.Take(ctx, n+5)
}

// What comes beyond what may be in hand is given back at once.
func TestDrainReturnsWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineOf(t, time.Second)
		b := newBroker(line, 10)
		require.NoError(t, queue.Drain(t.Context(), line, generous{b}))
		assert.Len(t, b.done, 10)
		assert.Equal(t, every(0, time.Second, 10), b.started)
		assert.GreaterOrEqual(t, len(b.returned), 25)
		assert.Empty(t, b.twice())
	})
}
