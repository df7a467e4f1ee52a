package shaper

// made panics if the Shaper was not made by this package: without limits it could only
// fail in stranger ways. The fast path of a call does not ask, as a zero Shaper has none.
func (s *Shaper) made() { s.own.made() }

func (f *flow) made() {
	if f.line == nil {
		panic("shaper: zero Shaper: use New")
	}
}

// made panics if the Group was not made by this package.
func (g *Group[K]) made() {
	if len(g.shards) == 0 {
		panic("shaper: zero Group: use NewGroup")
	}
}

// in returns the Group of the key, and panics if no Group has made it.
func (k *Key[K]) in() *Group[K] {
	if k.group == nil {
		panic("shaper: zero Key: use Group.Of")
	}
	return k.group
}
