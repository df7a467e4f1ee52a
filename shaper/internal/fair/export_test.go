package fair

// V returns the virtual time, in parts of a unit.
func (s *Sharing[O]) V() int64 { return s.v }

// Tags returns S and F of the head, and false if the flow has none.
func (f *Flow[O]) Tags() (start, finish int64, ok bool) { return f.start.v, f.finish, f.waits }

// Parts is how many there are of a unit.
const Parts = unit
