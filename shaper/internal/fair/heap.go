package fair

// The orders of the heaps.
type order int

const (
	byFinish order = iota // heads that the fluid has begun with
	byStart               // heads that it will begin with
	byLast                // flows that it serves, by when they leave the sum
)

// Which of its places a flow has in a heap: it is in one of the heaps of heads at a time.
const (
	inQueue = iota
	inServed
)

// A heap is a binary heap of flows that know where they are in it, from 1.
type heap[O any] struct {
	flows []*Flow[O]
	by    order
	which int
}

func (h *heap[O]) less(a, b *Flow[O]) bool {
	switch {
	case h.by == byLast:
		return a.leaves < b.leaves
	case h.by == byStart && a.start != b.start:
		return a.start < b.start
	case a.finish != b.finish:
		return a.finish < b.finish
	}
	return a.order < b.order
}

// first returns the least, or nil.
func (h *heap[O]) first() *Flow[O] {
	if len(h.flows) == 0 {
		return nil
	}
	return h.flows[0]
}

func (h *heap[O]) add(f *Flow[O]) {
	h.flows = append(h.flows, f)
	h.up(len(h.flows)-1, f)
}

// fix puts a flow in its place that has changed.
func (h *heap[O]) fix(f *Flow[O]) {
	h.up(int(f.at[h.which])-1, f)
	h.down(int(f.at[h.which])-1, f)
}

func (h *heap[O]) remove(f *Flow[O]) {
	i, last := int(f.at[h.which])-1, len(h.flows)-1
	moved := h.flows[last]
	h.flows[last] = nil
	h.flows = h.flows[:last]
	f.at[h.which] = 0
	if moved != f {
		h.set(i, moved)
		h.fix(moved)
	}
}

func (h *heap[O]) up(i int, f *Flow[O]) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(f, h.flows[parent]) {
			break
		}
		h.set(i, h.flows[parent])
		i = parent
	}
	h.set(i, f)
}

func (h *heap[O]) down(i int, f *Flow[O]) {
	for {
		child := 2*i + 1
		if child >= len(h.flows) {
			break
		}
		if child+1 < len(h.flows) && h.less(h.flows[child+1], h.flows[child]) {
			child++
		}
		if !h.less(h.flows[child], f) {
			break
		}
		h.set(i, h.flows[child])
		i = child
	}
	h.set(i, f)
}

func (h *heap[O]) set(i int, f *Flow[O]) {
	h.flows[i] = f
	f.at[h.which] = int32(i + 1)
}
