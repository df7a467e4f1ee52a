package discipline

import "testing"

func TestDbg(t *testing.T) {
	s := script{seed: [2]uint64{16886717170362353351, 10931206416157508592}, keys: 11, steps: 500, burst: 1, overtake: 0, maxWeight: 30, gap: 19, classes: 1, cancels: 20, blocks: 5, weights: 20}
	var ll *Line
	n := 0
	s.play(func(l *Line) Rule {
		ll = l
		w := &watch{EEVDF: EEVDF{}.New(l).(*EEVDF), t: t}
		return &dbg{w, func(c *Call) {
			if f, _ := ll.Worst.Float64(); f > 5 && n < 1 {
				n++
				t.Logf("now %d worst %f V %s level %s: %s", l.now, f, w.v.FloatString(4), l.Fluid.Level().FloatString(4), w.last)
			}
		}}
	})
}

type dbg struct {
	*watch
	f func(c *Call)
}

func (d *dbg) Left(c *Call) {
	d.watch.note("leaving cost "+string(rune('0'+c.Cost)), c.Key)
	x := d.tags[c.Key.ID]
	d.watch.last += " F=" + x.f.FloatString(4) + " V=" + d.v.FloatString(4) + " w=" + x.weight.FloatString(0)
	d.f(c)
	d.watch.Left(c)
}
func (d *dbg) Gone(c *Call, h bool) {
	x := d.tags[c.Key.ID]
	d.watch.last += " |GONE cost " + string(rune('0'+c.Cost))
	if x.seated {
		d.watch.last += " oldF=" + x.f.FloatString(4) + " V=" + d.v.FloatString(4)
	}
	d.watch.Gone(c, h)
}
