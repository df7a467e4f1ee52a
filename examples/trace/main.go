// Trace shows the difference between a meter and a shaper: fifteen calls come at
// once, to a limit of 2 per second with room for 10.
//
//	go run ./examples/trace
//
// The meter says yes or no. It passes ten at once, and the partner sees a burst of
// ten. The shaper lets the same ten leave evenly, one every half second. Both refuse
// five, and both tell when to come back.
//
// The time is a mock's, so the five seconds take no time: that is how a program
// that uses a Shaper is tested outside of a testing/synctest bubble.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

const (
	calls    = 15
	capacity = 10
	step     = 500 * time.Millisecond
)

var rate = scheduler.PerSecond(2)

// A verdict is what became of one call.
type verdict struct {
	at   time.Duration // when it passed or left
	wait time.Duration // if it was refused: when to come back
	err  bool
}

func (v verdict) String() string {
	if v.err {
		return fmt.Sprintf("refused (%.1f s)", v.wait.Seconds())
	}
	return fmt.Sprintf("%.1f s", v.at.Seconds())
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	metered, err := meter()
	if err != nil {
		return err
	}
	shaped, err := shape()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d calls at 0 s, %v, capacity %d\n\n", calls, rate, capacity)
	fmt.Fprintf(out, "call  %-18s%s\n", "meter", "shaper")
	for i := range calls {
		fmt.Fprintf(out, "%4d  %-18v%v\n", i+1, metered[i], shaped[i])
	}
	fmt.Fprintf(out, "\nmeter   %s\nshaper  %s\n", timeline(metered), timeline(shaped))
	fmt.Fprintf(out, "s       0     1     2     3     4     5     (calls that pass in each half second)\n\n")
	for _, kind := range []struct {
		name     string
		verdicts []verdict
	}{{"meter", metered}, {"shaper", shaped}} {
		admitted, last := admitted(kind.verdicts)
		fmt.Fprintf(out, "%-6s  %d admitted, %d refused, the last one at %.1f s\n",
			kind.name, admitted, calls-admitted, last.Seconds())
	}
	return nil
}

// meter asks for each call whether it may pass now.
func meter() ([]verdict, error) {
	bucket, err := scheduler.NewGCRA(rate, capacity)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, calls)
	for i := range verdicts {
		ok, retryAfter := scheduler.Allow(bucket, time.Unix(0, 0), 1)
		verdicts[i] = verdict{wait: retryAfter, err: !ok}
	}
	return verdicts, nil
}

// shape lets each call wait its turn.
func shape() ([]verdict, error) {
	mock := clock.NewMock()
	start := mock.Now()
	s, err := shaper.New(rate, shaper.WithQueue(capacity), shaper.WithClock(mock))
	if err != nil {
		return nil, err
	}

	type answer struct {
		call int
		err  error
	}
	answers := make(chan answer)
	for i := range calls {
		go func() { answers <- answer{i, s.Wait(context.Background())} }()
		// The calls come in order: each has arrived before the next one starts.
		for s.Stats().Submitted < int64(i+1) {
			runtime.Gosched()
		}
	}

	verdicts := make([]verdict, calls)
	for answered := int64(0); ; {
		// Each call that has been answered by now says so before time moves on.
		st := s.Stats()
		for ; answered < st.Left+st.Refused; answered++ {
			a := <-answers
			v := verdict{at: mock.Since(start)}
			var refusal *shaper.Refusal
			if errors.As(a.err, &refusal) {
				v = verdict{wait: refusal.Delay, err: true}
			} else if a.err != nil {
				return nil, a.err
			}
			verdicts[a.call] = v
		}
		if answered == calls {
			return verdicts, nil
		}
		// One call is due at each step. The mock does not wait until it has left.
		mock.Add(step)
		for s.Stats().Left == st.Left {
			runtime.Gosched()
		}
	}
}

// timeline draws how many calls pass in each half second.
func timeline(verdicts []verdict) string {
	counts := make([]int, 11)
	for _, v := range verdicts {
		if !v.err {
			counts[min(int(v.at/step), len(counts)-1)]++
		}
	}
	var b strings.Builder
	for _, n := range counts {
		cell := "."
		if n > 0 {
			cell = fmt.Sprint(n)
		}
		fmt.Fprintf(&b, "%-3s", cell)
	}
	return strings.TrimRight(b.String(), " ")
}

func admitted(verdicts []verdict) (n int, last time.Duration) {
	for _, v := range verdicts {
		if !v.err {
			n++
			last = max(last, v.at)
		}
	}
	return n, last
}
