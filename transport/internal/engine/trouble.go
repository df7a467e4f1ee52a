package engine

// trouble tells a partner that is in trouble from one of which a single resource is, by
// refusals that name neither a limit nor a time (feedback.Verdict.Trouble) and by the
// successes that come meanwhile.
//
// A refusal counts for two, a success takes one off, and the partner is in trouble while the
// count is at its bound. So it is, if no success is known; at ten such refusals in a row;
// and when more than a third of the answers are such refusals for a while. A refusal below
// that is about its own request.
//
// Refusals may come fast and successes slowly, so that ten of the ones come before the
// first of the others. That shows when a success comes of a request that was sent before
// the partner was held to be in trouble: then the bound is doubled. It is as at first when
// the partner is found to be in trouble without one.
type trouble struct {
	spare int  // how far the count is below its bound
	bound int  // 0 counts as firstBound
	alarm bool // the latest refusal of the key was held against the partner, and no success has come since
}

const (
	refusedTrouble = 2
	firstBound     = 10 * refusedTrouble
	lastBound      = firstBound << 5
)

// refused is told of a refusal, and reports whether the partner is in trouble.
func (t *trouble) refused() bool {
	t.spare = max(t.spare-refusedTrouble, 0)
	return t.spare == 0
}

// counted is told when a refusal is held against the partner; inTrouble tells whether it is
// for that.
func (t *trouble) counted(inTrouble bool) {
	if t.alarm && inTrouble {
		t.bound = firstBound
	}
	t.alarm = inTrouble
}

// served is told of a success.
func (t *trouble) served() { t.spare = min(t.spare+1, max(t.bound, firstBound)) }

// falseAlarm is told of a success of a request that was sent before the latest refusal, but
// after the one before. It reports whether it is the first that shows so.
func (t *trouble) falseAlarm() bool {
	if !t.alarm {
		return false
	}
	t.alarm = false
	t.bound = min(2*max(t.bound, firstBound), lastBound)
	return true
}
