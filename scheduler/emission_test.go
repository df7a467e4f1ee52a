package scheduler

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/trial"
)

// convert is exact where a den of 63 bits can hold the result, and otherwise
// above it by less than 1/den.
func TestConvertNeverRoundsDown(t *testing.T) {
	rounds, exact := 0, 0
	trial.Run(t, 5000, func(t *testing.T, rng *rand.Rand) {
		rounds++
		random := func() emission {
			return newEmission(Per(1+rng.Int64N(1<<rng.IntN(62)), time.Duration(1+rng.Int64N(1<<rng.IntN(62)))))
		}
		p, q := random(), random()
		owed := span{ns: rng.Uint64N(1 << rng.IntN(62)), frac: rng.Uint64N(p.den)}

		want := p.rational(owed)
		want.Mul(want, new(big.Rat).SetFrac(bigUint(q.period), bigUint(q.units)))
		want.Mul(want, new(big.Rat).SetFrac(bigUint(p.units), bigUint(p.period)))

		got, q := p.convert(owed, q)
		if got == forever {
			if want.Cmp(new(big.Rat).SetInt64(maxInt64)) < 0 {
				t.Fatalf("%v ns saturate", want.FloatString(3))
			}
			return
		}
		over := new(big.Rat).Sub(q.rational(got), want)
		if over.Sign() < 0 || over.Cmp(new(big.Rat).SetFrac(big.NewInt(1), bigUint(q.den))) >= 0 {
			t.Fatalf("%v ns become %v", want.FloatString(20), q.rational(got).FloatString(20))
		}
		if got.frac >= q.den || q.den%q.units != 0 || q.den > maxDen {
			t.Fatalf("frac %d of den %d, units %d", got.frac, q.den, q.units)
		}
		if over.Sign() == 0 {
			exact++
		}
	})
	if rounds > 100 && (exact == 0 || exact == rounds) {
		t.Errorf("%d of %d were exact: both kinds should be met", exact, rounds)
	}
}
