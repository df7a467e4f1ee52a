package departures

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestRateCountsGapsAndNotDepartures(t *testing.T) {
	l := NewLog(scheduler.PerSecond(10))
	_, ok := l.Summary().PerSecond()
	assert.False(t, ok, "no departure, no rate")

	l.Add(at(0), 1, 0)
	_, ok = l.Summary().PerSecond()
	assert.False(t, ok, "one departure has no gap")

	for i := 1; i <= 10; i++ {
		l.Add(at(100*i), 1, 0)
	}
	rate, ok := l.Summary().PerSecond()
	assert.True(t, ok)
	assert.InDelta(t, 10, rate, 1e-9, "11 departures in one second are 10/s")
}

func TestRateIsOfUnitsPaidBeforeTheLastDeparture(t *testing.T) {
	l := NewLog(scheduler.PerSecond(10))
	l.Add(at(0), 3, 0)
	l.Add(at(300), 1, 0)
	l.Add(at(400), 5, 0) // its price would show in the next gap
	s := l.Summary()
	assert.EqualValues(t, 3, s.Count)
	assert.EqualValues(t, 9, s.Units)
	assert.EqualValues(t, 4, s.Paid)
	assert.Equal(t, 400*time.Millisecond, s.Took)
	assert.Equal(t, 100*time.Millisecond, s.SmallestGap)
	rate, _ := s.PerSecond()
	assert.InDelta(t, 10, rate, 1e-9)
}

func TestAddedLate(t *testing.T) {
	l := NewLog(scheduler.PerSecond(10))
	l.Add(at(100), 1, 0)
	l.Add(at(50), 1, 0)
	s := l.Summary()
	assert.Zero(t, s.SmallestGap)
	assert.Zero(t, s.Took)
	_, ok := s.PerSecond()
	assert.False(t, ok)
}

func TestPercentiles(t *testing.T) {
	for _, test := range []struct {
		n        int // waits of 1 to n ns, in descending order
		p50, p99 time.Duration
	}{
		{0, 0, 0}, {1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {100, 50, 99}, {101, 51, 100}, {1000, 500, 990},
	} {
		var w waits
		for i := test.n; i > 0; i-- {
			w.add(time.Duration(i))
		}
		p50, p99 := w.percentiles()
		assert.Equal(t, test.p50, p50, "p50 of %d", test.n)
		assert.Equal(t, test.p99, p99, "p99 of %d", test.n)
		assert.EqualValues(t, test.n, w.longest)
	}
}

func TestWaitsForgetAllButTheLatest(t *testing.T) {
	var w waits
	w.add(time.Hour)
	for range 3*Remembered + 7 {
		w.add(time.Second)
	}
	assert.Len(t, w.ring, Remembered)
	_, p99 := w.percentiles()
	assert.Equal(t, time.Second, p99)
	assert.Equal(t, time.Hour, w.longest, "the longest of all is not forgotten")
}

func TestHistogramEvenUnitsFillRowsEvenly(t *testing.T) {
	l := NewLog(scheduler.PerSecond(10))
	for i := range 50 {
		jitter := 20 - i%3*10 // the first is late, so others follow it sooner than they are due
		l.Add(at(100*i+jitter), 1, 0)
	}
	s := l.Summary()
	assert.Equal(t, 500*time.Millisecond, s.width)
	assert.Equal(t, []int64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, s.rows)
}

func TestHistogramIsBounded(t *testing.T) {
	h := newHistogram(scheduler.PerSecond(10))
	total := int64(0)
	for i := range 100_000 {
		h.add(time.Duration(i)*100*time.Millisecond, 1)
		total++
	}
	sum := int64(0)
	for _, n := range h.rows[:h.used] {
		sum += n
	}
	assert.Equal(t, total, sum, "no unit is lost when rows are folded")
	assert.LessOrEqual(t, h.used, maxRows)
	assert.Greater(t, h.used, maxRows/2)
	assert.EqualValues(t, 0, h.width%(500*time.Millisecond))
	for _, n := range h.rows[:h.used-1] {
		assert.Equal(t, h.rows[0], n)
	}
}

func TestHistogramOfAnExtremeRate(t *testing.T) {
	for _, rate := range []scheduler.Rate{
		scheduler.Unlimited, scheduler.PerDay(1), scheduler.Every(math.MaxInt64), scheduler.Per(math.MaxInt64, 1),
	} {
		h := newHistogram(rate)
		h.add(0, 1)
		h.add(48*time.Hour, 1)
		h.add(1e6*time.Hour, 1)
		var sum int64
		for _, n := range h.rows[:h.used] {
			sum += n
		}
		assert.EqualValues(t, 3, sum, rate)
	}
}

func TestText(t *testing.T) {
	l := NewLog(scheduler.PerSecond(10))
	var b strings.Builder
	l.Summary().WriteText(&b, "parts")
	assert.Equal(t, "no departures\n", b.String())

	l.Add(at(0), 2, 0)
	b.Reset()
	l.Summary().WriteText(&b, "parts")
	assert.NotContains(t, b.String(), "rate")
	assert.NotContains(t, b.String(), "gap")

	l.Add(at(200), 1, 100*time.Millisecond)
	l.Add(at(1000), 1, 2*time.Second)
	b.Reset()
	l.Summary().WriteText(&b, "parts")
	assert.Equal(t, `wait           p50 100ms, p99 2s, max 2s, from handing over until it left
achieved rate  3 parts/s: 3 parts left in the 1s before the last departure; asked for 10/s
smallest gap   200ms between two departures

parts per 500ms
        0s  ###                                      3
     500ms                                           0
        1s  #                                        1
`, b.String())
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		n, most int64
		length  int
	}{
		{0, 0, 0}, {0, 7, 0}, {7, 7, 7}, {40, 40, 40}, {80, 80, 40}, {40, 80, 20}, {1, 1_000_000, 1},
		{math.MaxInt64, math.MaxInt64, 40}, {0, math.MaxInt64, 0},
	} {
		require.Len(t, bar(test.n, test.most), test.length, "%d of %d", test.n, test.most)
	}
}

func TestSignificant(t *testing.T) {
	for f, text := range map[float64]string{10: "10", 9.99734: "9.997", 12345.6: "12346", 0.0000578: "5.78e-05"} {
		assert.Equal(t, text, significant(f))
	}
}
