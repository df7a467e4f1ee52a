package scheduler_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]scheduler.Rate{
		"10/s":      scheduler.PerSecond(10),
		"300/min":   scheduler.PerMinute(300),
		"300/m":     scheduler.PerMinute(300),
		"300/5min":  scheduler.Per(300, 5*time.Minute),
		"40/h":      scheduler.PerHour(40),
		"5/24h":     scheduler.PerDay(5),
		"5/d":       scheduler.PerDay(5),
		"5/day":     scheduler.PerDay(5),
		"9/7d":      scheduler.Per(9, 7*day),
		"1/250ms":   scheduler.Every(250 * time.Millisecond),
		"1/1h30m":   scheduler.Every(90 * time.Minute),
		"1/2.5s":    scheduler.Every(2500 * time.Millisecond),
		"2/ms":      scheduler.Per(2, time.Millisecond),
		"2/µs":      scheduler.Per(2, time.Microsecond),
		"7/1s":      scheduler.PerSecond(7),
		"unlimited": scheduler.Unlimited,
	} {
		got, err := scheduler.ParseRate(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestRateTextIsItsInverse(t *testing.T) {
	for want, r := range map[string]scheduler.Rate{
		"10/s":      scheduler.PerSecond(10),
		"300/min":   scheduler.PerMinute(300),
		"40/h":      scheduler.PerHour(40),
		"5/24h":     scheduler.PerDay(5),
		"1/250ms":   scheduler.Every(250 * time.Millisecond),
		"1/10m":     scheduler.Every(10 * time.Minute),
		"1/1h0m10s": scheduler.Every(time.Hour + 10*time.Second),
		"unlimited": scheduler.Unlimited,
	} {
		assert.Equal(t, want, r.String())
		back, err := scheduler.ParseRate(want)
		assert.NoError(t, err)
		assert.Equal(t, r, back)
	}
}

func TestParseRateRefusesNonsense(t *testing.T) {
	for _, text := range []string{
		"", "10", "10/", "/s", "/", "0/s", "-1/s", "10/0s", "10/-1s", "1.5/s", "1e3/s", "ten/s", "10/fortnight",
		"10 / s", " 10/s", "10/s ", "10/s/s", "99999999999999999999/s", "1/10000000000s", "1/9999999999d", "1/1.5d",
		"1/-1d", "1/-200000000min", "5/-200000d", "1/0d", "NaN/s", "Inf/s", "1/min1", "1/1m1min",
	} {
		_, err := scheduler.ParseRate(text)
		assert.ErrorContains(t, err, `"`+text+`"`)
	}
	_, err := scheduler.ParseRate(strings.Repeat("1", 1<<20))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 200, "the error repeats little of a long text")
}

func TestRateInJSON(t *testing.T) {
	var config struct{ Limit scheduler.Rate }
	require.NoError(t, json.Unmarshal([]byte(`{"Limit":"300/min"}`), &config))
	assert.Equal(t, scheduler.PerMinute(300), config.Limit)
	out, err := json.Marshal(config)
	require.NoError(t, err)
	assert.Equal(t, `{"Limit":"300/min"}`, string(out))

	assert.ErrorContains(t, json.Unmarshal([]byte(`{"Limit":"0/s"}`), &config), `"0/s"`)
	assert.Equal(t, scheduler.PerMinute(300), config.Limit, "unchanged by the error")
	_, err = json.Marshal(scheduler.PerSecond(0))
	assert.ErrorContains(t, err, "0/s")
}

func TestRateFor(t *testing.T) {
	assert.Equal(t, 333333334*time.Nanosecond, scheduler.PerSecond(3).Interval())
	assert.Equal(t, time.Second, scheduler.PerSecond(3).For(3))
	assert.Equal(t, time.Duration(0), scheduler.PerSecond(3).For(0))
	assert.Equal(t, time.Duration(0), scheduler.Unlimited.For(math.MaxInt64))
	assert.Equal(t, time.Duration(0), scheduler.Rate{}.For(1))
	assert.Equal(t, time.Duration(math.MaxInt64), scheduler.PerDay(1).For(200_000), "547 years")
}

func TestRateFraction(t *testing.T) {
	r, err := scheduler.ParseRate("300/min")
	require.NoError(t, err)
	assert.EqualValues(t, 300, r.Units())
	assert.Equal(t, time.Minute, r.Period())
	assert.Zero(t, scheduler.Unlimited.Units())
	assert.Zero(t, scheduler.Unlimited.Period())
}

func TestRateCmp(t *testing.T) {
	assert.Zero(t, scheduler.PerMinute(60).Cmp(scheduler.PerSecond(1)))
	assert.Negative(t, scheduler.PerMinute(59).Cmp(scheduler.PerSecond(1)))
	assert.Positive(t, scheduler.PerMinute(61).Cmp(scheduler.PerSecond(1)))
	assert.Positive(t, scheduler.Per(math.MaxInt64, math.MaxInt64-1).Cmp(scheduler.Every(1)))
	assert.Positive(t, scheduler.Unlimited.Cmp(scheduler.PerSecond(math.MaxInt64)))
	assert.Negative(t, scheduler.PerSecond(1).Cmp(scheduler.Unlimited))
	assert.Zero(t, scheduler.Unlimited.Cmp(scheduler.Unlimited))
}

// FuzzParseRate: no text makes it panic; what it accepts is valid and survives
// the way through String.
func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"10/s", "300/min", "5/24h", "1/250ms", "unlimited", "1/1h0m0s", "7/3d", "-1/s", "1/", "9223372036854775807/µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := scheduler.ParseRate(s)
		if err != nil {
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("ParseRate(%q) is invalid: %v", s, err)
		}
		if strings.Contains(s, "-") {
			t.Fatalf("ParseRate(%q) = %v: a sign was lost", s, r)
		}
		back, err := scheduler.ParseRate(r.String())
		if err != nil || back != r {
			t.Fatalf("ParseRate(%q) = %v, back through String: %v, %v", s, r, back, err)
		}
	})
}

func TestRateScale(t *testing.T) {
	for _, tt := range []struct {
		rate     scheduler.Rate
		num, den int64
		want     scheduler.Rate
	}{
		{scheduler.PerSecond(10), 1, 1, scheduler.PerSecond(10)},
		{scheduler.PerSecond(10), 7, 10, scheduler.PerSecond(7)},
		{scheduler.PerSecond(3), 1, 2, scheduler.Per(3, 2*time.Second)},
		{scheduler.Every(time.Hour), 2, 4, scheduler.Every(2 * time.Hour)},
		{scheduler.Per(math.MaxInt64, math.MaxInt64), 1, math.MaxInt64, scheduler.Per(1, math.MaxInt64)},
		{scheduler.Unlimited, 1, 3, scheduler.Unlimited},
	} {
		got, err := tt.rate.Scale(tt.num, tt.den)
		require.NoError(t, err)
		assert.Zero(t, got.Cmp(tt.want), "%v times %d/%d is %v", tt.rate, tt.num, tt.den, got)
	}
	for want, f := range map[string]func() (scheduler.Rate, error){
		"units must":    func() (scheduler.Rate, error) { return scheduler.PerSecond(0).Scale(1, 2) },
		"times 0/1":     func() (scheduler.Rate, error) { return scheduler.PerSecond(1).Scale(0, 1) },
		"times 1/-1":    func() (scheduler.Rate, error) { return scheduler.PerSecond(1).Scale(1, -1) },
		"out of range":  func() (scheduler.Rate, error) { return scheduler.Per(1, math.MaxInt64).Scale(1, 2) },
		"out of range ": func() (scheduler.Rate, error) { return scheduler.Per(math.MaxInt64, 1).Scale(2, 1) },
	} {
		_, err := f()
		assert.ErrorContains(t, err, strings.TrimSpace(want))
	}
}
