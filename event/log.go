package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
)

// Quiet is for how long [Log] does not repeat itself.
const Quiet = 10 * time.Second

// Log returns a Hook that writes to the logger, or to slog.Default() if that is nil: one line for
// each change of state, and no line for each call. What happens again and again, as calls are
// refused for one reason, is one line when it begins and one each ten seconds while it goes on,
// with how often it has happened since. Keys are written as they are, so they should hold no
// secrets; nothing else that is written comes from callers.
func Log(to *slog.Logger) Hook {
	l := &log{to: to, said: map[saying]*repeats{}}
	return l.note
}

type log struct {
	to *slog.Logger // nil: the default one, as it is then

	mu   sync.Mutex
	said map[saying]*repeats // guarded by mu
}

// A saying is what a line says, apart from when and how often.
type saying struct {
	kind   Kind
	of     string
	reason string
	status int
}

type repeats struct {
	since time.Time // the latest line
	more  int       // how often since then
}

// mostSayings bounds how many are remembered: the ones that are forgotten may be repeated.
const mostSayings = 256

func (l *log) note(e Event) {
	more, again := l.repeated(e)
	if again {
		return
	}
	to := l.to
	if to == nil {
		to = slog.Default()
	}
	to.LogAttrs(context.Background(), e.level(), e.Kind.String(), append(e.attrs(), count(more)...)...)
}

// repeated reports whether an event was written a short while ago, and otherwise how many like it
// were not.
func (l *log) repeated(e Event) (more int, again bool) {
	s := saying{kind: e.Kind, of: e.Of, status: e.Status}
	if e.Err != nil {
		s.reason = reason.Label(e.Err)
	}
	switch e.Kind {
	case Refused, PartnerRefused, Retried, KeysFull:
	default:
		return 0, false // the state has changed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.said[s]
	switch {
	case r == nil:
		for old := range l.said {
			if len(l.said) < mostSayings {
				break
			}
			delete(l.said, old)
		}
		l.said[s] = &repeats{since: e.Time}
		return 0, false
	case e.Time.Sub(r.since) < Quiet:
		r.more++
		return 0, true
	}
	more, r.more, r.since = r.more, 0, e.Time
	return more, false
}

func count(more int) []slog.Attr {
	if more == 0 {
		return nil
	}
	return []slog.Attr{slog.Int("repeated", more)}
}

// level is Warn where calls or requests fail, Error where a limit has lost its store, and Debug
// for what was mended.
func (e Event) level() slog.Level {
	switch e.Kind {
	case Refused, KeysFull, PartnerRefused:
		return slog.LevelWarn
	case StoreAway:
		return slog.LevelError
	case Retried:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// attrs are the fields that there are.
func (e Event) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("limit", e.Of)}
	if e.Key != "" {
		attrs = append(attrs, slog.String("key", e.Key))
	}
	if !e.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", e.Until))
	}
	if e.Rate != nil {
		attrs = append(attrs, slog.String("rate", e.Rate.String()))
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("reason", e.Err))
	}
	return attrs
}
