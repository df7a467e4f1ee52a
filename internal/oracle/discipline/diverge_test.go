package discipline

import "testing"

type watch struct {
	*EEVDF
	t    *testing.T
	done bool
	last string
	hist map[int]string
}

func (w *watch) check(what string, k *Key) {
	if w.done {
		return
	}
	w.line.Fluid.Advance(w.line.at())
	if w.v.Cmp(w.line.Fluid.Level()) == 0 {
		return
	}
	for _, k := range w.line.Keys {
		if a, b := w.ahead(k), k.fluid.Ahead(); a.Cmp(b) != 0 && len(k.Calls) > 0 {
			w.done = true
			w.t.Logf("now %d key %c ahead %s fluid %s weight %d v %s: %s", w.line.now, 'a'+k.ID, a.FloatString(4), b.FloatString(4), k.Weight, w.v.FloatString(4), w.hist[k.ID])
		}
	}
	if w.v.Cmp(w.line.Fluid.Level()) != 0 {
		w.done = true
		a, _ := w.v.Float64()
		b, _ := w.line.Fluid.Level().Float64()
		w.t.Logf("now %d: V %f level %f, after %s, before %s", w.line.now, a, b, w.last, what)
	}
}
func (w *watch) note(what string, k *Key) {
	t := w.tags[k.ID]
	s := what + " key " + string(rune('a'+k.ID)) + " chain " + t.chain.FloatString(3)
	if t.seated {
		s += " s " + t.s.FloatString(3) + " f " + t.f.FloatString(3)
		for _, c := range k.Calls {
			s += " e" + t.entered[c].FloatString(2)
		}
	}
	if w.hist == nil {
		w.hist = map[int]string{}
	}
	h := w.hist[k.ID] + " | " + s + " v " + w.v.FloatString(3) + " w " + string(rune('0'+k.Weight))
	if t.seated {
		h += " seat " + t.weight.FloatString(0)
	}
	if len(h) > 1100 {
		h = h[len(h)-1100:]
	}
	w.hist[k.ID] = h
	w.last += " | " + s
	if len(w.last) > 1800 {
		w.last = w.last[len(w.last)-1800:]
	}
}
func (w *watch) Joined(c *Call)          { w.EEVDF.Joined(c); w.note("joined", c.Key) }
func (w *watch) Gone(c *Call, head bool) { w.EEVDF.Gone(c, head); w.note("gone", c.Key) }
func (w *watch) Left(c *Call)            { w.EEVDF.Left(c); w.note("left", c.Key) }
func (w *watch) Blocked(k *Key)          { w.EEVDF.Blocked(k); w.note("blocked", k) }
func (w *watch) Unblocked(k *Key)        { w.EEVDF.Unblocked(k); w.note("unblocked", k) }
func (w *watch) Reweighed(k *Key)        { w.EEVDF.Reweighed(k); w.note("reweighed", k) }
func (w *watch) Next() *Key              { return w.EEVDF.Next() }

func TestDiverge(t *testing.T) {
	for _, s := range []script{
		{seed: [2]uint64{14320463748731731772, 13279205108665774897}, keys: 8, steps: 200, burst: 5, overtake: 100, maxWeight: 5, gap: 7, classes: 3, cancels: 20},
		{seed: [2]uint64{16886717170362353351, 10931206416157508592}, keys: 11, steps: 500, burst: 1, overtake: 0, maxWeight: 30, gap: 19, classes: 1, cancels: 20, blocks: 5, weights: 20},
	} {
		late := s.play(func(l *Line) Rule {
			w := &watch{EEVDF: EEVDF{}.New(l).(*EEVDF), t: t}
			l.watch = w.check
			return w
		})
		t.Log(late)
	}
}
