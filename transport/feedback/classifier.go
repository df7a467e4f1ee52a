package feedback

import "strings"

// A Classifier tells from a response whether the partner refused the request because
// of a limit. It must be safe for concurrent use, must change neither the Answer's
// header nor its request, and must not keep the Answer. It should look at the status
// and the headers first: [Answer.Body] waits for the partner to send the body.
//
// A Transport asks it without the body first, so that what the headers say is heeded at
// once, and a second time with the body if it has called Body and found nothing.
type Classifier func(*Answer) Verdict

// Default is the Classifier for partners that keep to the standards. Refused are
//
//   - 429 Too Many Requests (RFC 6585, section 4), with or without a stated time;
//   - 503 Service Unavailable (RFC 9110, section 15.6.4), with or without a stated time;
//     without one it is Trouble as well;
//   - 403 Forbidden with a stated time, or with a header that counts 0 remaining
//     requests. A plain 403 is about permission;
//   - 413, 418, 420, 425, 430, 500, 502, 504, 509, 529 and 598 with a stated time. Plain
//     ones tell of something else.
//
// All others are about the one request, 400, 401, 404, 408, 409, 410 and 422 among them:
// what time they state is the time to send that one again.
//
// Of these, if the headers count 0 remaining requests with a reset, the verdict is Spent, by
// [ReadSpent].
//
// The time is that of [Answer.Wait]: Retry-After in any form, or a count of 0 remaining
// requests with a reset, and on a 429 a reset that has no count. Default never looks at
// the body and never says Unprocessed.
func Default(a *Answer) Verdict {
	switch wordOf(a.Status()) {
	case limited:
		return refusal(a)
	case busy:
		return overload(a)
	case counted:
		if v := refusal(a); v.Stated || exhausted(a.Header(), a.received) {
			return v
		}
	case timed:
		if v := refusal(a); v.Stated {
			return v
		}
	case silent:
		return remaining(a)
	}
	return Verdict{}
}

// refusal is the verdict on a response that is known to be a refusal: the time is
// what the headers state.
func refusal(a *Answer) Verdict {
	wait, capped, ok := a.Wait()
	return Verdict{Refused: true, Wait: wait, Stated: ok, Capped: capped, Account: ofAccount(a.Header())}
}

// overload is the verdict on a response that tells of too much load, on the whole partner
// or on the one resource.
func overload(a *Answer) Verdict {
	v := refusal(a)
	v.Trouble = !v.Stated
	return v
}

// Any asks the classifiers one after the other; the first that says Refused wins, or else the
// first that says Spent. It
// is for rules of one's own in front of [Default] or of a partner's Classifier: those
// fall back to Default, so what stands behind them is hardly ever asked. To choose
// between partners use [ByHost]. A nil classifier is skipped.
func Any(classifiers ...Classifier) Classifier {
	return func(a *Answer) (spent Verdict) {
		for _, c := range classifiers {
			if c == nil {
				continue
			}
			v := c(a)
			if v.Refused {
				return v
			}
			if v.Spent && !spent.Spent {
				spent = v
			}
		}
		return spent
	}
}

// ByHost chooses the Classifier by the host that was asked. A key is a host in lower
// case without a port, such as "api.stripe.com"; it stands for its subdomains too
// ("amazonaws.com"), and the longest match wins. Other hosts, and responses without a
// Request, get [Default], as does a nil Classifier. The map must not be changed
// afterwards.
func ByHost(hosts map[string]Classifier) Classifier {
	return func(a *Answer) Verdict {
		req := a.Request()
		if req == nil || req.URL == nil {
			return Default(a)
		}
		host, more := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), "."), true
		for more {
			if c := hosts[host]; c != nil {
				return c(a)
			}
			_, host, more = strings.Cut(host, ".")
		}
		return Default(a)
	}
}

// EpochRetryAfter is a profile for partners whose Retry-After carries a point in time
// as seconds or milliseconds since 1970 in place of a delay. By the standard such a
// number is a delay of half a century, which is above any cap. With this profile a
// number of 1e9 or more is a point in time, measured against the response's Date; a
// smaller one is a delay as ever. What next (nil means [Default]) reads by
// [Answer.Wait] is read that way.
func EpochRetryAfter(next Classifier) Classifier {
	if next == nil {
		next = Default
	}
	return func(a *Answer) Verdict {
		profiled := *a // shares the body: what is read through one, the other has
		profiled.epoch = true
		return next(&profiled)
	}
}
