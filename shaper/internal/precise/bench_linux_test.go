package precise

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkLateness sets an Alarm and a time.Timer anew as each fires, to keep to a
// grid: how late do they fire, and what does a wake-up cost?
func BenchmarkLateness(b *testing.B) {
	for _, every := range []time.Duration{time.Millisecond, 200 * time.Microsecond} {
		b.Run("alarm/"+every.String(), func(b *testing.B) {
			measure(b, every, func(fire func()) func(time.Duration) { return New(fire).Set })
		})
		b.Run("timer/"+every.String(), func(b *testing.B) {
			measure(b, every, func(fire func()) func(time.Duration) {
				t := time.AfterFunc(time.Hour, fire)
				return func(d time.Duration) { t.Reset(d) }
			})
		})
	}
}

func measure(b *testing.B, every time.Duration, newSet func(fire func()) func(time.Duration)) {
	late := make([]time.Duration, 0, b.N)
	done := make(chan struct{})
	var due time.Time
	var set func(time.Duration)
	set = newSet(func() {
		now := time.Now()
		late = append(late, now.Sub(due))
		if len(late) == b.N {
			close(done)
			return
		}
		// The next instant of the grid that is not over.
		due = due.Add((now.Sub(due)/every + 1) * every)
		set(due.Sub(now))
	})
	b.ResetTimer()
	used := cpu(b)
	due = time.Now().Add(every)
	set(every)
	<-done
	used = cpu(b) - used
	b.StopTimer()
	slices.Sort(late)
	b.ReportMetric(us(late[len(late)/2]), "p50-late-us")
	b.ReportMetric(us(late[len(late)*99/100]), "p99-late-us")
	b.ReportMetric(us(used)/float64(b.N), "cpu-us/op")
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// cpu returns what this process has used so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSet is an Alarm whose deadline moves on and on, as those of calls that give
// up: no system call.
func BenchmarkSet(b *testing.B) {
	a := New(func() {})
	b.ReportAllocs()
	for b.Loop() {
		a.Set(time.Hour)
	}
	a.Stop()
}

// BenchmarkSetStop leaves nothing set each time.
func BenchmarkSetStop(b *testing.B) {
	a := New(func() {})
	b.ReportAllocs()
	for b.Loop() {
		a.Set(time.Hour)
		a.Stop()
	}
}

func BenchmarkAvailable(b *testing.B) {
	for b.Loop() {
		Available()
	}
}
