package discipline

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-go/sluice/internal/trial"
)

func TestFeature(t *testing.T) {
	for name, set := range map[string]func(s *script){
		"plain":                  func(s *script) {},
		"classes":                func(s *script) { s.classes = 3 },
		"cancels":                func(s *script) { s.cancels = 20 },
		"blocks":                 func(s *script) { s.blocks = 20 },
		"limits":                 func(s *script) { s.limits = 50 },
		"weights":                func(s *script) { s.weights = 20 },
		"holds":                  func(s *script) { s.holds = 3 },
		"cancels+classes":        func(s *script) { s.cancels, s.classes = 20, 3 },
		"cancels+classes+blocks": func(s *script) { s.cancels, s.classes, s.blocks = 20, 3, 10 },
	} {
		worst, where := 0.0, script{}
		trial.Run(t, 30, func(t *testing.T, rng *rand.Rand) {
			s := newScript(rng)
			s.steps, s.classes, s.cancels, s.blocks, s.limits, s.weights, s.holds = 200, 1, 0, 0, 0, 0, 0
			set(&s)
			if late := s.play(EEVDF{}.New); late > worst {
				worst, where = late, s
			}
		})
		t.Logf("%-12s %6.2f  %+v", name, worst, where)
	}
}
