package scheduler

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxRateText bounds the text that ParseRate looks at, and so what its errors
// repeat. The longest text that String writes is far shorter.
const maxRateText = 64

// unlimitedText is how Unlimited is written.
const unlimitedText = "unlimited"

// ParseRate reads a rate as String writes it: units, a slash and a period, such
// as "10/s", "300/min", "5/24h" or "1/250ms", or the word "unlimited". Units are
// a whole number. The period is a [time.ParseDuration] text or a whole number of
// "min" or "d" (24 hours); without its number a unit means one.
//
// The error names the text and what is wrong with it.
func ParseRate(s string) (Rate, error) {
	if len(s) > maxRateText {
		return Rate{}, fmt.Errorf("scheduler: parse rate %q...: longer than %d bytes", s[:maxRateText], maxRateText)
	}
	r, err := parseRate(s)
	if err != nil {
		return Rate{}, fmt.Errorf("scheduler: parse rate %q: %w", s, err)
	}
	return r, nil
}

func parseRate(s string) (Rate, error) {
	if s == unlimitedText {
		return Unlimited, nil
	}
	before, after, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, errors.New(`want units/period, such as "10/s"`)
	}
	units, err := strconv.ParseInt(before, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return Rate{}, fmt.Errorf("units %s are out of range", before)
	case err != nil:
		return Rate{}, fmt.Errorf(`units %q are no whole number (write "1/2s" for half a unit per second)`, before)
	case units < 1:
		return Rate{}, errors.New("units must be at least 1")
	}
	period, err := parsePeriod(after)
	switch {
	case err != nil:
		return Rate{}, err
	case period < 1:
		return Rate{}, errors.New("the period must be positive")
	}
	return Per(units, period), nil
}

// parsePeriod reads a Go duration, and beside it the units that partners write
// and Go does not have.
func parsePeriod(s string) (time.Duration, error) {
	number := strings.TrimRightFunc(s, unicode.IsLetter)
	var unit time.Duration
	switch s[len(number):] {
	case "min":
		unit = time.Minute
	case "d", "day":
		unit = day
	}
	if number == "" && s != "" {
		number = "1"
		s = number + s
	}
	if unit == 0 {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf(`period %q is no duration, such as "s", "min", "24h" or "250ms"`, s)
		}
		return d, nil
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("period %q is no positive whole number of its unit within range", s)
	}
	return time.Duration(n) * unit, nil
}

// String writes the rate as units/period. For a valid rate [ParseRate] is its
// exact inverse.
func (r Rate) String() string {
	if r.unlimited {
		return unlimitedText
	}
	return strconv.FormatInt(r.units, 10) + "/" + periodText(r.period)
}

func periodText(d time.Duration) string {
	switch d {
	case time.Second:
		return "s"
	case time.Minute:
		return "min"
	case time.Hour:
		return "h"
	}
	// 24h0m0s is the same duration as 24h.
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

// MarshalText writes what String writes. An invalid rate is an error.
func (r Rate) MarshalText() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what [ParseRate] reads. On an error r is unchanged.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
