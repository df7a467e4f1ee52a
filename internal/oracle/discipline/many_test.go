package discipline

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-go/sluice/internal/trial"
)

func TestMany(t *testing.T) {
	div, n, worst := 0, 0, 0.0
	var where, dwhere script
	trial.Run(t, 100, func(t *testing.T, rng *rand.Rand) {
		s := newScript(rng)
		s.steps = 200
		var w *watch
		late := s.play(func(l *Line) Rule {
			w = &watch{EEVDF: EEVDF{}.New(l).(*EEVDF), t: t}
			l.watch = w.check
			return w
		})
		n++
		if w.done {
			div++
			dwhere = s
		}
		if late > worst {
			worst, where = late, s
		}
	})
	t.Logf("%d of %d diverge, worst %f\n%#v\n%#v", div, n, worst, where, dwhere)
}
