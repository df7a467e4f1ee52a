package shaper

import (
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
	"github.com/sluice-go/sluice/scheduler"
)

// LogValue returns the label, the reason, the cost, the class if it is not 0, and where they are
// known the wait, rounded, and the end of the hold. It has nothing but these.
func (r *Refusal) LogValue() slog.Value {
	why := ""
	if r.Reason != nil {
		why = r.Reason.Error()
	}
	attrs := []slog.Attr{
		slog.String("label", r.Label()),
		slog.String("reason", why),
		slog.Int("cost", r.Cost),
	}
	if r.Class > 0 {
		attrs = append(attrs, slog.Int("class", r.Class))
	}
	if r.Delay > 0 {
		attrs = append(attrs, slog.Duration("delay", reason.Round(r.Delay)))
	}
	return slog.GroupValue(append(attrs, instant("held_until", r.heldUntil)...)...)
}

// LogValue returns the fields in words of lower case. The rate is there if the schedule has
// one, and the end of a hold if one is in force.
func (st Stats) LogValue() slog.Value {
	attrs := append(callAttrs(st.Submitted, st.Left, st.Cancelled, st.Refused, st.Waiting, st.Units),
		slog.Int64("in_flight", st.InFlight),
		slog.Duration("oldest", reason.Round(st.Oldest)),
		slog.Int64("left_units", st.LeftUnits),
		slog.Int64("unused_units", st.UnusedUnits),
		slog.Bool("paused", st.Paused),
	)
	if st.Rate != (scheduler.Rate{}) {
		attrs = append(attrs, slog.Any("rate", st.Rate))
	}
	attrs = append(attrs, instant("next_due", st.NextDue)...)
	return slog.GroupValue(append(attrs, instant("held_until", st.HeldUntil)...)...)
}

// LogValue returns the fields in words of lower case.
func (st GroupStats) LogValue() slog.Value {
	return slog.GroupValue(append(callAttrs(st.Submitted, st.Left, st.Cancelled, st.Refused, st.Waiting, st.Units),
		slog.Int64("in_flight", st.InFlight),
		slog.Int64("left_units", st.LeftUnits),
		slog.Duration("oldest", reason.Round(st.Oldest)),
		slog.Int("keys", st.Keys),
	)...)
}

// callAttrs returns the attributes of the counts of calls.
func callAttrs(submitted, left, cancelled, refused, waiting, units int64) []slog.Attr {
	return []slog.Attr{
		slog.Int64("submitted", submitted),
		slog.Int64("left", left),
		slog.Int64("cancelled", cancelled),
		slog.Int64("refused", refused),
		slog.Int64("waiting", waiting),
		slog.Int64("units", units),
	}
}

// instant returns the attribute of an instant, if there is one.
func instant(name string, t time.Time) []slog.Attr {
	if t.IsZero() {
		return nil
	}
	return []slog.Attr{slog.Time(name, t)}
}
