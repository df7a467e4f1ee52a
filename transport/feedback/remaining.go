package feedback

import (
	"net/http"
	"strings"
	"time"
)

// ReadSpent returns how long the headers of an answer that is no refusal ask to stay away: they
// count nothing, or less, that remains of a limit, and tell when it starts afresh. They are read
// as by [ReadHeaders], but for Retry-After and its kin, which on such an answer are about the
// one request.
func ReadSpent(h http.Header, received time.Time, max time.Duration) (wait time.Duration, capped, ok bool) {
	if !Counts(h) {
		return 0, false, false // not even the Date is read
	}
	now := serverTime(h, received)
	for _, limits := range families {
		if s := limits(h, now); s.stated {
			wait, capped = bound(s.wait, max)
			return wait, capped, true
		}
	}
	return 0, false, false
}

// ReadRemaining returns how many units the headers of an answer count that remain, and how long it
// takes until that limit starts afresh: of the limit with the lowest count of those that state
// both. ok is false if there is none, or if something is used up; see [ReadSpent].
func ReadRemaining(h http.Header, received time.Time, max time.Duration) (units int64, wait time.Duration, ok bool) {
	if !Counts(h) {
		return 0, 0, false
	}
	now := serverTime(h, received)
	for _, limits := range families {
		switch s := limits(h, now); {
		case s.any:
			return 0, 0, false
		case s.counted:
			wait, _ = bound(s.lowWait, max)
			return s.low, wait, true
		}
	}
	return 0, 0, false
}

// Counts reports whether there may be a header that counts what remains, or states a limit. Of
// an answer that has none, and a status that is not [MayRefuse], Default says nothing.
func Counts(h http.Header) bool {
	for name := range h {
		for _, family := range [...]string{"Ratelimit", "X-Rate", "Anthropic-Ratelimit-", "X-Hubspot-Ratelimit-"} {
			if strings.HasPrefix(name, family) {
				return true
			}
		}
	}
	return false
}

// remaining is the verdict on an answer that is no refusal.
func remaining(a *Answer) Verdict {
	wait, capped, ok := ReadSpent(a.Header(), a.received, a.max)
	if !ok {
		return Verdict{}
	}
	return Verdict{Spent: true, Wait: wait, Stated: true, Capped: capped, Account: ofAccount(a.Header())}
}

// ofAccount reports whether the headers say that a limit is that of the whole account: those of
// Discord and what is like them, of Stripe, and of Jira.
func ofAccount(h http.Header) bool {
	has := func(name string, means func(value string) bool) bool {
		for value := range elements(field(h, name)) {
			if means(strings.ToLower(value)) {
				return true
			}
		}
		return false
	}
	return has("X-Ratelimit-Global", func(v string) bool { return v == "true" || v == "1" }) ||
		has("X-Ratelimit-Scope", func(v string) bool {
			return v == "global" || v == "account" || v == "organization"
		}) ||
		has("Stripe-Rate-Limited-Reason", func(v string) bool { return strings.HasPrefix(v, "global-") }) ||
		has("Ratelimit-Reason", func(v string) bool { return strings.Contains(v, "-global-") })
}
