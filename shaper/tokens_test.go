package shaper_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A tokenPartner meters the tokens that calls really took, in a bucket, as of when they came. It
// refuses a call when the bucket is overdrawn.
type tokenPartner struct {
	mu      sync.Mutex
	rate    float64 // tokens a second
	size    float64
	level   float64 // what is in use
	touched time.Time

	refused int
	used    float64
}

func (p *tokenPartner) take(tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.level = max(p.level-now.Sub(p.touched).Seconds()*p.rate, 0)
	p.touched = now
	if p.level += float64(tokens); p.level > p.size {
		p.refused++
		p.level -= float64(tokens)
		return
	}
	p.used += float64(tokens)
}

// typedef-ai/fenic#313, BerriAI/litellm#36143, bespokelabsai/curator#235: a partner meters the
// tokens that were used, and a call may use four times the mean. To settle uses the limit and is
// never refused; to reserve the cap alone uses a quarter, and to count afterwards goes over it.
func TestTokensAreSettled(t *testing.T) {
	const (
		mean, most = 1000, 4 * 1000
		perMinute  = 600_000
		burst      = 400_000 // covers what is in flight: 10 calls a second, each for 5 s, of 4,000
	)
	span := 10 * time.Hour
	if testing.Short() || raced {
		span = time.Hour
	}
	run := func(t *testing.T, how string) (p *tokenPartner) {
		synctest.Test(t, func(t *testing.T) {
			p = &tokenPartner{rate: perMinute / 60.0, size: burst, touched: time.Now()}
			s := newShaper(t, scheduler.PerMinute(perMinute), shaper.WithBurst(burst), shaper.WithTolerance(0),
				shaper.WithUnsettled(10_000, time.Hour),
				shaper.WithLimits(scheduler.PerCall(scheduler.Must(scheduler.NewGCRA(scheduler.PerMinute(6_000), 100)))))
			rng := rand.New(rand.NewPCG(1, 2))
			draw := func() (tokens int, takes time.Duration) {
				const sigma = 0.5
				tokens = int(math.Exp(math.Log(mean)-sigma*sigma/2+sigma*rng.NormFloat64())) + 1
				return min(tokens, most), time.Duration(1+rng.Int64N(9000)) * time.Millisecond
			}
			var calls sync.WaitGroup
			for start := time.Now(); time.Since(start) < span; {
				stated := most
				if how == "count afterwards" {
					stated = 1
				}
				d, err := s.Depart(t.Context(), shaper.Call{Cost: stated})
				require.NoError(t, err)
				tokens, takes := draw()
				p.take(tokens)
				if how == "reserve" {
					continue
				}
				calls.Go(func() {
					time.Sleep(takes)
					assert.NoError(t, d.Settle(tokens))
				})
			}
			calls.Wait()
		})
		return p
	}
	used := map[string]float64{}
	refused := map[string]int{}
	for _, how := range []string{"settle", "reserve", "count afterwards"} {
		p := run(t, how)
		used[how], refused[how] = p.used/(perMinute*span.Minutes()), p.refused
		t.Logf("%-16s %5.1f %% of the limit used, %d refused", how, 100*used[how], p.refused)
	}
	assert.Zero(t, refused["settle"])
	assert.GreaterOrEqual(t, used["settle"], 0.95)
	assert.Zero(t, refused["reserve"])
	assert.InDelta(t, 0.25, used["reserve"], 0.02)
	assert.Greater(t, refused["count afterwards"], 0)
}
