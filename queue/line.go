package queue

// minLine is the smallest buffer that a line keeps.
const minLine = 16

// line holds the jobs that wait, first in, first out. It is a ring that grows and shrinks
// with its content, so a backlog of yesterday costs no memory today, and it keeps no
// reference to a job that has left.
type line struct {
	ring []Job
	head int // index of the oldest job
	n    int // number of jobs
}

func (l *line) len() int { return l.n }

func (l *line) push(j Job) {
	if l.n == len(l.ring) {
		l.resize(max(minLine, 2*l.n))
	}
	l.ring[(l.head+l.n)%len(l.ring)] = j
	l.n++
}

// pop takes the oldest job out. The line must not be empty.
func (l *line) pop() Job {
	j := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) % len(l.ring)
	l.n--
	// Half of a quarter-full ring stays free, so pushing and popping at the edge does not
	// copy it over and over.
	if len(l.ring) > minLine && l.n <= len(l.ring)/4 {
		l.resize(len(l.ring) / 2)
	}
	return j
}

// takeAll empties the line and returns its jobs, oldest first; nil if there are none.
func (l *line) takeAll() []Job {
	if l.n == 0 {
		return nil
	}
	l.resize(l.n)
	jobs := l.ring
	*l = line{}
	return jobs
}

func (l *line) resize(size int) {
	ring := make([]Job, size)
	end := min(l.head+l.n, len(l.ring))
	k := copy(ring, l.ring[l.head:end])
	copy(ring[k:], l.ring[:l.n-k])
	l.ring, l.head = ring, 0
}
