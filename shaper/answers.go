package shaper

// answers are those of calls for which no caller waits. They are told when the lock is free,
// one after another, in the order in which they came about: by the goroutine that has brought
// them about, or by one that is telling some already. So one that calls for more does not end
// up within itself.
type answers struct {
	due     []answer
	spare   []answer
	telling bool
}

type answer struct {
	done  func(error)
	err   error
	owner owner
}

// add has an answer told. A call that is in flight keeps its key for its Release.
func (a *answers) add(f *flow, done func(error), err error, place bool) {
	owner := f.owner
	if place && err == nil {
		owner = nil
	}
	a.due = append(a.due, answer{done, err, owner})
}

// answerLocked gives a call its answer. It never blocks: a channel has room for one value,
// and there is one answer.
func (l *line) answerLocked(f *flow, c *call, refusal error) {
	if done := c.done(); done != nil {
		l.answers.add(f, done, refusal, c.place)
		l.spare.put(c)
		return
	}
	if c.refused = refusal != nil; c.refused {
		if l.refusals == nil {
			l.refusals = make(map[*call]error)
		}
		l.refusals[c] = refusal
	}
	c.ready() <- struct{}{}
}

// tell is called with the lock and returns it.
func (l *line) tell() {
	l.answers.telling = true
	locked := true
	defer func() { // a function of the user's may panic
		if !locked {
			l.mu.Lock()
		}
		if l.answers.telling = len(l.answers.due) > 0; l.answers.telling {
			go l.tellOn()
		}
		l.mu.Unlock()
	}()
	for len(l.answers.due) > 0 {
		due := l.answers.due
		l.answers.due, l.answers.spare = l.answers.spare[:0], nil
		l.mu.Unlock()
		locked = false
		tellAll(due)
		clear(due)
		l.mu.Lock()
		locked = true
		l.answers.spare = due[:0]
	}
}

func (l *line) tellOn() {
	l.mu.Lock()
	l.tell()
}

// tellAll tells each answer, those behind one whose function panics included.
func tellAll(due []answer) {
	next := 0
	defer func() {
		if next < len(due) {
			go tellAll(due[next:])
		}
	}()
	for next < len(due) {
		next++
		due[next-1].tell()
	}
}

func (a *answer) tell() {
	if a.owner != nil {
		defer a.owner.answered()
	}
	if a.done != nil {
		a.done(a.err)
	}
}
