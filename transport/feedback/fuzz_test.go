package feedback_test

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// fields are the headers that are read.
var fields = []string{
	"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "RateLimit",
	"RateLimit-Remaining", "RateLimit-Reset",
	"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After",
	"X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests",
	"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset",
	"Anthropic-RateLimit-Tokens-Remaining", "Anthropic-RateLimit-Tokens-Reset",
	"X-HubSpot-RateLimit-Remaining", "X-HubSpot-RateLimit-Interval-Milliseconds", "X-HubSpot-RateLimit-Daily-Remaining",
	"Sforce-Limit-Info", "Date",
}

// Whatever stands in the headers: the wait is absent or in [0, max], every Classifier
// says the same about it, and a plain number of seconds is what it is.
func FuzzReadHeaders(f *testing.F) {
	for _, value := range []string{
		"120", "2.5", "-5", "NaN", "99999999999999999999", "1700000060", "1700000060000", "6m0s", "12ms", "soon", "", ",", "0, 0",
		"Tue, 14 Nov 2023 22:15:20 GMT", "Tuesday, 14-Nov-23 22:15:20 GMT", "Tue Nov 14 22:15:20 2023", "2023-11-14T22:15Z",
		"Tue, 14 Nov 2023 22:15:20 +0000", "Wed, 15 Nov 2023 03:45:20 +0530", "Tuesday, 14-Nov-23 22:15:20 -0000", "Sat, 31 Dec 2016 23:59:60 GMT",
		"14 Nov 23 22:15:20 +00:00", "2023-11-14 22:15:20 +0000", "0000-01-01T00:00:00Z", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon,", `"default";r=0;t=30`, "limit=100, remaining=0, reset=5",
		`"a";r=0;t=-`, "api-usage=1/1", `"a";t=30`,
	} {
		for i := range fields {
			f.Add(uint8(i), value, uint8(i+1), value, "0", int64(1_700_000_000), int64(hour))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, value string, j uint8, other, remaining string, received, limit int64) {
		h := http.Header{}
		for _, field := range fields {
			if strings.HasSuffix(field, "-Remaining") {
				h.Set(field, remaining)
			}
		}
		one := fields[int(i)%len(fields)]
		h.Add(one, value)
		h.Add(fields[int(j)%len(fields)], other)

		max := time.Duration(limit)
		at := time.Unix(received, 0)
		wait, capped, ok := feedback.ReadHeaders(h, at, max)
		switch {
		case !ok && (wait != 0 || capped):
			t.Fatalf("absent, yet %v %v", wait, capped)
		case wait < 0 || ok && max >= 0 && wait > max || max < 0 && wait != 0:
			t.Fatalf("%v is not in [0, %v]", wait, max)
		case capped && max >= 0 && wait != max:
			t.Fatalf("capped, yet %v of %v", wait, max)
		}
		for name, classify := range classifiers {
			for _, status := range []int{200, 403, 429, 500, 503} {
				v := classify(feedback.NewAnswer(&http.Response{StatusCode: status, Header: h}, at, max))
				if v != v.Within(max) {
					t.Fatalf("%s: %d: %+v is out of bounds", name, status, v)
				}
				if status == 429 && name == "Default" && ok && v != (feedback.Verdict{Refused: true, Wait: wait, Stated: ok, Capped: capped}) {
					t.Fatalf("%+v, but the headers say %v %v %v", v, wait, capped, ok)
				}
				if status == 200 && v.Refused {
					t.Fatalf("%s: 200 is refused", name)
				}
			}
		}

		// The definition, for the one form that the standard states.
		if n, isNumber := wholeNumber(value); isNumber {
			alone, capped, ok := feedback.ReadHeaders(header("Retry-After: "+value), at, hour)
			want := hour
			if tooLong := n.Cmp(big.NewInt(3600)) > 0; !tooLong {
				want = time.Duration(n.Int64()) * time.Second
			} else if !capped {
				t.Fatalf("Retry-After: %s is above the cap", value)
			}
			if !ok || alone != want {
				t.Fatalf("Retry-After: %s is %v %v, not %v", value, alone, ok, want)
			}
		}
	})
}

// An instant is the same wait in every zone and in every form that names its zone.
func FuzzZones(f *testing.F) {
	f.Add(int64(1_700_000_120), 0, 0, false)
	f.Add(int64(1_700_000_120), 5, 30, false)
	f.Add(int64(1_700_000_120), 8, 0, true)
	f.Add(int64(1_483_228_800), 14, 59, true)
	f.Fuzz(func(t *testing.T, at int64, hours, minutes int, west bool) {
		if at < 1_000_000_000 || at > 2_000_000_000 {
			t.Skip()
		}
		offset := (hours&0xf)*3600 + (minutes&0x1f)*60
		if west {
			offset = -offset
		}
		there := time.Unix(at, 0).In(time.FixedZone("", offset))
		want, _, _ := feedback.ReadHeaders(header("Retry-After: "+there.UTC().Format(http.TimeFormat)), now, 1<<62)
		for _, layout := range []string{
			time.RFC1123Z, time.RFC822Z[:len("02 Jan 06 15:04")] + ":05 -0700", "Monday, 02-Jan-06 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 -07:00",
			time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07:00",
		} {
			value := there.Format(layout)
			got, _, ok := feedback.ReadHeaders(header("Retry-After: "+value), now, 1<<62)
			if !ok || got != want {
				t.Fatalf("%q is %v %v, not %v", value, got, ok, want)
			}
		}
	})
}

func wholeNumber(s string) (*big.Int, bool) {
	if s == "" || len(s) > 1000 || strings.Trim(s, "0123456789") != "" {
		return nil, false
	}
	return new(big.Int).SetString(s, 10)
}

// The caller of a body that was peeked at reads the same bytes and meets the same
// errors at the same places as without the peek, and reaches Close as often.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"code":20429}`), []byte{3, 0, 200, 7}, uint16(1), uint8(0), uint16(5))
	f.Add(bytes.Repeat([]byte("x"), 100), []byte{255}, uint16(400), uint8(1), uint16(512))
	f.Add([]byte{}, []byte{}, uint16(0), uint8(3), uint16(0))
	f.Add([]byte("<Error><Code>SlowDown</Code></Error>"), []byte{1, 2, 128, 129}, uint16(1), uint8(2), uint16(1))
	f.Fuzz(func(t *testing.T, data, chunks []byte, times uint16, how uint8, size uint16) {
		data = bytes.Repeat(data, int(times)%600)
		if len(data) > 4*feedback.MaxPeek {
			data = data[:4*feedback.MaxPeek]
		}
		plain := &scripted{script: scriptOf(data, chunks)}
		original := &scripted{script: scriptOf(data, chunks)}
		resp := respond([]int{200, 400, 403, 429, 500}[int(how)%5], "")
		resp.Body = original
		a := answer(resp)
		for _, classify := range classifiers {
			classify(a)
		}
		head := a.Body()
		if len(head) > feedback.MaxPeek {
			t.Fatalf("%d bytes peeked", len(head))
		}

		events := len(plain.script) + 2
		want := readEvents(plain, events, int(size)%1500+1)
		got := readEvents(resp.Body, events, int(size)%1500+1)
		if len(want) != len(got) {
			t.Fatalf("%d events, not %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(want[i].data, got[i].data) || want[i].err != got[i].err {
				t.Fatalf("event %d: %d bytes and %v, not %d bytes and %v", i, len(got[i].data), got[i].err, len(want[i].data), want[i].err)
			}
		}
		if original.closed != 0 {
			t.Fatal("closed by itself")
		}
		for i := range int(how)%3 + 1 {
			_ = resp.Body.Close()
			if original.closed != i+1 {
				t.Fatalf("%d of %d Closes arrived", original.closed, i+1)
			}
		}

		// Closed half-way, nothing that was peeked comes up any more.
		early := &scripted{script: scriptOf(data, chunks)}
		resp.Body = early
		feedback.NewAnswer(resp, now, hour).Body()
		_, _ = resp.Body.Read(make([]byte, int(size)%1500))
		_ = resp.Body.Close()
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != errClosed {
			t.Fatalf("%d bytes and %v after Close", n, err)
		}
	})
}

var errBroken = errors.New("broken")

// scriptOf cuts data into reads. The high bit of a chunk's length puts an error at its
// end, and a length of 0 is a read that returns nothing.
func scriptOf(data, chunks []byte) (script []step) {
	for _, c := range chunks {
		n := min(int(c&0x7f), len(data))
		var err error
		if c&0x80 != 0 {
			err = errBroken
		}
		script = append(script, step{bytes.Clone(data[:n]), err})
		data = data[n:]
	}
	return append(script, step{bytes.Clone(data), nil})
}

// readEvents reads size bytes at a time and returns what came before each error.
func readEvents(r io.Reader, events, size int) (seen []step) {
	buf := make([]byte, size)
	var data []byte
	for len(seen) < events {
		n, err := r.Read(buf)
		data = append(data, buf[:n]...)
		if err != nil {
			seen = append(seen, step{data, err})
			data = nil
		}
	}
	return seen
}
