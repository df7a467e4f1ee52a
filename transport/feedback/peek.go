package feedback

import (
	"io"
	"net/http"
	"slices"
	"sync"
)

// MaxPeek is how many bytes of a body a [Classifier] gets to see at most. Refusals
// are short; what is cut off there is not valid JSON any more and is not recognised.
const MaxPeek = 16 << 10

const (
	firstPeek = 512
	// maxEmptyReads is how often a body may return neither a byte nor an error
	// before it is taken for broken and left to its caller.
	maxEmptyReads = 100
)

// peeker reads the start of a body once, and puts a replay in the body's place.
type peeker struct {
	resp *http.Response
	done bool
	head []byte
}

func (p *peeker) peek() []byte {
	if p.done {
		return p.head
	}
	p.done = true
	body := p.resp.Body
	if body == nil || body == http.NoBody || p.resp.StatusCode < 200 {
		return nil
	}
	if _, ok := body.(io.Writer); ok {
		return nil // wrapped, it could not be written to any more
	}
	head, err := readHead(body)
	if len(head) > 0 || err != nil {
		p.head = head
		p.resp.Body = &replay{body: body, head: head, err: err}
	}
	return p.head
}

// readHead reads MaxPeek bytes, or up to the first error.
func readHead(r io.Reader) ([]byte, error) {
	var head []byte
	for empty := 0; len(head) < MaxPeek && empty < maxEmptyReads; {
		if len(head) == cap(head) {
			head = slices.Grow(head, max(firstPeek, len(head)))
		}
		n, err := r.Read(head[len(head):min(cap(head), MaxPeek)])
		head = head[:len(head)+n]
		if err != nil {
			return head, err
		}
		if n > 0 {
			empty = 0
		} else {
			empty++
		}
	}
	return head, nil
}

// replay is a body whose start has been read: it gives out that start, then the error
// that ended it, if one did, and is the original body from there on.
type replay struct {
	body io.ReadCloser

	// A body may be closed while another goroutine reads it: that is how a read
	// that blocks is ended. mu is never held while the original body is at work.
	mu   sync.Mutex
	head []byte // what is still to be given out
	err  error  // what comes after it
}

func (r *replay) Read(p []byte) (int, error) {
	r.mu.Lock()
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		r.mu.Unlock()
		return n, nil
	}
	if err := r.err; err != nil {
		// Once: whether it lasts is for the original to say.
		r.head, r.err = nil, nil
		r.mu.Unlock()
		return 0, err
	}
	r.mu.Unlock()
	return r.body.Read(p)
}

// Close drops what has not been given out, so that a later Read meets what the
// original body says after its end.
func (r *replay) Close() error {
	r.mu.Lock()
	r.head, r.err = nil, nil
	r.mu.Unlock()
	return r.body.Close()
}
