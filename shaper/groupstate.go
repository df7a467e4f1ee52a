package shaper

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/codec"
)

// MarshalBinary returns the state of all keys that are remembered, each as it is at one
// moment; see [Shaper.MarshalBinary]. It may be called at any time.
//
// Keys are saved as what they are if they are strings or integers, and as their text if
// they have MarshalText and UnmarshalText. Keys of other types are an error.
func (g *Group[K]) MarshalBinary() ([]byte, error) {
	g.made()
	text, err := keyTexts[K]()
	if err != nil {
		return nil, err
	}
	var keys []savedKey[K]
	for i := range g.shards {
		if keys, err = g.shards[i].snapshots(keys); err != nil {
			return nil, err
		}
	}
	e := codec.Encode(kindGroup)
	e.Duration(g.time.skew())
	e.Int(int64(len(keys)))
	for i := range keys {
		name, err := text.of(keys[i].key) // a method of the user's, so no lock is held
		if err != nil {
			return nil, fmt.Errorf("shaper: state: key %d of %d: %w", i+1, len(keys), err)
		}
		e.Bytes(name)
		part := codec.Part()
		keys[i].snap.encode(part)
		e.Bytes(part.Fields())
	}
	return e.Finish()
}

// UnmarshalBinary replaces the state of all keys that are in a state of
// [Group.MarshalBinary], as a rule before the first call; see [Shaper.UnmarshalBinary].
// Other keys stay as they are. A key that owes nothing any more is forgotten at once.
//
// The rate that a key has by [WithRates] is asked for. More keys than the Group may
// remember are an error that matches [ErrTooManyKeys]. An error leaves all keys as they
// were; if the Group is in use meanwhile, other calls may see some keys changed before it.
func (g *Group[K]) UnmarshalBinary(data []byte) error {
	g.made()
	text, err := keyTexts[K]()
	if err != nil {
		return err
	}
	d := codec.Decode("shaper", kindGroup, data)
	skew := decodeSkew(d)
	keys := decodeKeys(d, text)
	if err := d.Finish(); err != nil {
		return err
	}
	for i := range keys {
		before, err := g.restore(keys[i].key, keys[i].snap, skew)
		if err != nil {
			return errors.Join(fmt.Errorf("shaper: state: key %d of %d: %w", i+1, len(keys), err), g.takeBack(keys[:i]))
		}
		keys[i].snap = before
	}
	return nil
}

// A savedKey is a key and its state.
type savedKey[K comparable] struct {
	key  K
	snap snapshot
}

func decodeKeys[K comparable](d *codec.Decoder, text keyText[K]) []savedKey[K] {
	n := d.Int()
	d.Check(n >= 0 && n <= int64(d.Len()), "the number of keys")
	var keys []savedKey[K]
	known := make(map[K]bool)
	for i := range n {
		name := d.Bytes()
		part := d.Part()
		snap := decodeSnapshot(part)
		if err := part.Finish(); err != nil && d.Err() == nil {
			d.Fail("key %d: %w", i+1, err) // its name may be a secret
		}
		if d.Err() != nil {
			return nil
		}
		key, err := text.key(name)
		switch {
		case err != nil:
			d.Fail("key %d: %w", i+1, err)
		case known[key]:
			d.Fail("key %d: it is there twice", i+1)
		}
		known[key] = true
		keys = append(keys, savedKey[K]{key, snap})
	}
	return keys
}

// restore replaces the state of a key and returns the one from before.
func (g *Group[K]) restore(key K, snap snapshot, skew time.Duration) (before snapshot, err error) {
	err = g.change(key, func(f *flow) error {
		l := f.lock()
		defer l.unlock()
		if before, err = f.snapshotLocked(); err != nil {
			return err
		}
		return f.restoreLocked(snap, skew)
	})
	return before, err
}

// takeBack restores what was before.
func (g *Group[K]) takeBack(keys []savedKey[K]) (err error) {
	for _, k := range keys {
		_, failed := g.restore(k.key, k.snap, g.time.skew())
		err = errors.Join(err, failed)
	}
	return err
}

// snapshots appends the keys of a shard.
func (sh *shard[K]) snapshots(keys []savedKey[K]) ([]savedKey[K], error) {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
	origin := sh.group.time.epoch.Add(sh.origin)
	var failed error
	sh.idle.all(sh.group.usual, func(key K, e idle) {
		pacer := e.class.pacer()
		e.class.ticks.Unpack(pacer, origin, e.tat)
		state, err := pacer.MarshalBinary()
		failed = errors.Join(failed, err)
		snap := snapshot{made: e.class.rate, full: e.class.rate, share: whole, debt: e.past.debt, states: [][]byte{state}}
		keys = append(keys, savedKey[K]{key, snap})
	})
	for key, m := range sh.bound {
		snap, err := m.flow.snapshot()
		failed = errors.Join(failed, err)
		keys = append(keys, savedKey[K]{key, snap})
	}
	return keys, failed
}

func (f *flow) snapshot() (snapshot, error) {
	l := f.lock()
	defer l.unlock()
	return f.snapshotLocked()
}
