package feedback

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// A Limit is what a partner states about one of its limits.
type Limit struct {
	Name   string        // the partner's, such as "requests" or "daily"; empty if it has none
	Units  int64         // so many, above 0
	Window time.Duration // in so long; 0 if that is not stated
}

// ReadLimits returns the limits that the headers of an answer state, those of the first of these
// forms that there is:
//
//  1. RateLimit-Policy, as the List of draft-ietf-httpapi-ratelimit-headers-10 or of the drafts
//     before ("100;w=60");
//  2. RateLimit-Limit and X-RateLimit-Limit, with the windows that they name, if any; with the
//     name of a limit at the end or in the middle (X-RateLimit-Limit-Requests,
//     Anthropic-RateLimit-Tokens-Limit) too, in the order of the names;
//  3. X-HubSpot-RateLimit-Max and its interval.
//
// What is malformed, or not above 0, is left out.
func ReadLimits(h http.Header) []Limit {
	if !Counts(h) {
		return nil
	}
	if limits := policies(field(h, "Ratelimit-Policy")); len(limits) > 0 {
		return limits
	}
	var limits []Limit
	var names []string
	for name := range h {
		if _, ok := limitName(name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		limit, _ := limitName(name)
		for _, l := range policies(field(h, name)) {
			if l.Name == "" {
				l.Name = limit
			}
			limits = append(limits, l)
		}
	}
	limits = slices.DeleteFunc(limits, func(l Limit) bool { // "100, 100;w=60" states one
		return l.Window == 0 && slices.ContainsFunc(limits, func(m Limit) bool {
			return m.Window > 0 && m.Name == l.Name && m.Units == l.Units
		})
	})
	if len(limits) > 0 {
		return limits
	}
	return hubSpotLimit(h)
}

// limitName returns the name of the limit of which a header states the number of units.
func limitName(header string) (limit string, ok bool) {
	if limit, ok = strings.CutPrefix(header, "X-Ratelimit-Limit"); !ok {
		limit, ok = strings.CutPrefix(header, "X-Rate-Limit-Limit")
	}
	if ok && isSuffix(limit) {
		return strings.ToLower(strings.TrimPrefix(limit, "-")), true
	}
	if limit, ok = strings.CutPrefix(header, "Anthropic-Ratelimit-"); ok {
		limit, ok = strings.CutSuffix(limit, "-Limit")
		return strings.ToLower(limit), ok
	}
	return "", header == "Ratelimit-Limit"
}

// policies reads a List of Items: "name";q=100;w=60, or 100;w=60.
func policies(lines []string) (limits []Limit) {
	if len(lines) == 0 {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		var l Limit
		units := item.Value
		param := func(name string) any {
			if item.Params == nil {
				return nil
			}
			v, _ := item.Params.Get(name)
			return v
		}
		if name, named := item.Value.(string); named {
			l.Name, units = name, param("q")
		}
		n, ok := units.(int64)
		if !ok || n <= 0 {
			continue
		}
		l.Units = n
		l.Window, _ = wholeSeconds(param("w"))
		limits = append(limits, l)
	}
	return limits
}

func hubSpotLimit(h http.Header) []Limit {
	const prefix = "X-Hubspot-Ratelimit-"
	most, ok1 := parseDecimal(trim(h.Get(prefix + "Max")))
	interval, ok2 := parseDecimal(trim(h.Get(prefix + "Interval-Milliseconds")))
	if !ok1 || !ok2 || most.whole <= 0 {
		return nil
	}
	return []Limit{{Units: int64(most.whole), Window: interval.of(time.Millisecond)}}
}
