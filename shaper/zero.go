package shaper

// made panics if the Shaper was not made by this package: without limits it could only
// fail in stranger ways. The fast path of a call does not ask, as a zero Shaper has none.
func (s *Shaper) made() {
	if s.own.line == nil {
		panic("shaper: zero Shaper: use New")
	}
}

// made panics if the Group was not made by this package.
func (g *Group[K]) made() {
	if len(g.shards) == 0 {
		panic("shaper: zero Group: use NewGroup")
	}
}
