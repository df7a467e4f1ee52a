package precise

// nowhere is the place of an Alarm that is in no heap.
const nowhere = -1

// alarms is a heap for container/heap: the earliest first. Each Alarm knows its place,
// so that it can be moved and taken out without a search.
type alarms []*Alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at < h[j].at }

func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *alarms) Push(x any) {
	a := x.(*Alarm)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	a.place = nowhere
	// The array behind the heap must not keep an Alarm that no Shaper waits for.
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
