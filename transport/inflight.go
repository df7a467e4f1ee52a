package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrTooManyInFlight is the reason for refusing a request when too many of its key wait
// for one of those in flight to end; see [WithMaxInFlight]. A Waiter that is [Places] has a
// bound of its own for its line, and reasons of its own.
var ErrTooManyInFlight = errors.New("transport: too many requests wait for those in flight")

// maxWaiting bounds how many requests of a key wait for a place.
const maxWaiting = 1024

// inFlight bounds the requests of each key that are in flight, for a Waiter that does not. A
// key is in it while there are any.
type inFlight struct {
	mu   sync.Mutex
	keys map[string]*places // guarded by mu
}

type places struct {
	free  *semaphore.Weighted // first come, first served
	users int64               // in flight or waiting; guarded by mu of inFlight
}

// take waits for a place of the key, of which there are most.
func (f *inFlight) take(ctx context.Context, key string, most int64) error {
	p, err := f.enter(key, most)
	if err != nil {
		return err
	}
	if err := p.free.Acquire(ctx, 1); err != nil {
		f.leave(key, p)
		return err
	}
	return nil
}

func (f *inFlight) enter(key string, most int64) (*places, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.keys[key]
	if p == nil {
		if f.keys == nil {
			f.keys = make(map[string]*places)
		}
		p = &places{free: semaphore.NewWeighted(most)}
		f.keys[key] = p
	}
	if p.users-maxWaiting >= most {
		return nil, ErrTooManyInFlight
	}
	p.users++
	return p, nil
}

func (f *inFlight) leave(key string, p *places) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(f.keys, key)
	}
}

// free gives a place back.
func (f *inFlight) free(key string) {
	f.mu.Lock()
	p := f.keys[key]
	f.mu.Unlock()
	p.free.Release(1)
	f.leave(key, p)
}

// oneLine reports whether requests wait for their place where they wait for their turn.
func (t *Transport) oneLine() bool { return t.maxInFlight > 0 && t.waiter.acquire != nil }

// freePlace gives the place of a request back.
func (t *Transport) freePlace(key string) {
	if t.oneLine() {
		t.waiter.release(key)
		return
	}
	t.places.free(key)
}

// line waits for a place, which is kept if the request may leave, and for its turn. Where
// these are two lines the place comes first: units that were granted must not wait any more.
func (t *Transport) line(ctx context.Context, p *passage) error {
	if t.maxInFlight == 0 || t.oneLine() {
		return t.turn(ctx, p)
	}
	if t.tooLate(ctx, p) {
		// Whatever time a place takes, the turn alone takes too long, and the Waiter says so.
		if err := t.turn(ctx, p); err != nil {
			return err
		}
	}
	if err := t.places.take(ctx, p.key, t.maxInFlight); err != nil {
		return err
	}
	p.placed = true
	err := t.turn(ctx, p)
	if err != nil {
		p.placed = false
		t.freePlace(p.key)
	}
	return err
}

// tooLate reports whether a request cannot leave before the deadline of its context, as
// far as the Waiter tells.
func (t *Transport) tooLate(ctx context.Context, p *passage) bool {
	deadline, ok := ctx.Deadline()
	return ok && t.waiter.delay != nil && !time.Now().Add(t.waiter.delay(p.key)).Before(deadline)
}
