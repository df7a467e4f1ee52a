package shaper

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/event"
)

// WithEvents has h called for each change of state: holds, pauses, rates, refusals, closing, and in
// a [Group] keys that there is no room for, with the key as fmt.Sprint writes it. The name says
// what it is about. See package event, which has a Hook for log/slog.
//
// Calls that leave are no events, so h costs them nothing. For keys under an account, what happens
// to the account is told by the account's hook.
func WithEvents(name string, h event.Hook) Option {
	return func(c *config) { c.events = &teller{name, h} }
}

// A teller tells of a Shaper or a Group.
type teller struct {
	name string
	hook event.Hook
}

// teller returns that of the key, or nil.
func (f *flow) teller() *teller {
	if f.party != nil {
		return f.party.events
	}
	return f.line.events
}

// noteLocked has an event of the key told once the lock is free. It is called where there is a
// teller.
func (f *flow) noteLocked(t *teller, e event.Event) {
	now := f.line.time.epoch.Add(f.line.time.elapsed)
	e.Of, e.Time = t.name, f.line.time.wall(now, now)
	if f.owner != nil {
		e.Key = f.owner.keyText()
	}
	f.line.answers.due = append(f.line.answers.due, answer{done: func(error) { t.hook(e) }})
}

// noteKindLocked is noteLocked for what there is nothing else to tell of.
func (f *flow) noteKindLocked(k event.Kind, until time.Time) {
	if t := f.teller(); t != nil {
		f.noteLocked(t, event.Event{Kind: k, Until: until})
	}
}

// noteClosedLocked tells that a Shaper takes no calls any more. A Group tells it of itself.
func (f *flow) noteClosedLocked() {
	if f.line.life.state == open && f.owner == nil {
		f.noteKindLocked(event.Closed, time.Time{})
	}
}

// noteClosed tells that the Group takes no calls any more.
func (g *Group[K]) noteClosed() {
	if t := g.config.events; t != nil {
		t.hook(event.Event{Time: time.Now(), Of: t.name, Kind: event.Closed})
	}
}

// keyText names the key in events.
func (m *member[K]) keyText() string { return fmt.Sprint(m.key) }

// turnedAway tells of a call that no key was made for, and returns why. No lock is held.
func (g *Group[K]) turnedAway(key K, err error) error {
	if err == nil || g.config.events == nil {
		return err
	}
	e := event.Event{Time: time.Now(), Of: g.config.events.name, Key: fmt.Sprint(key), Kind: event.Refused, Err: err}
	if errors.Is(err, ErrTooManyKeys) {
		e.Kind = event.KeysFull
	}
	g.config.events.hook(e)
	return err
}
