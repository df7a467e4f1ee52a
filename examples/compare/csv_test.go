package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read returns the calls as "seconds*cost" and what was reported as "line: reason".
func read(in io.Reader) (calls, reported []string, err error) {
	arrivals, err := readCSV(in, func(line int, err error) {
		reported = append(reported, fmt.Sprintf("%d: %v", line, err))
	})
	for _, a := range arrivals {
		calls = append(calls, fmt.Sprintf("%v*%d", a.at, a.cost))
	}
	return calls, reported, err
}

func TestCSV(t *testing.T) {
	const notNumber = "must be a number such as 0, 12 or 1.25"
	const notCost = "must be a whole number from 1 to 1000000"
	for _, test := range []struct {
		name     string
		in       string
		calls    []string
		reported []string
	}{
		{"nothing", "", nil, nil},
		{"only a header", "seconds,cost\n", nil, nil},
		{"a header", "seconds,cost\n1,2\n", []string{"1s*2"}, nil},
		{"a header without cost", "seconds\n1\n", []string{"1s*1"}, nil},
		{"a header of a spreadsheet", "\uFEFF\"Seconds\", COST\r\n1,2\r\n", []string{"1s*2"}, nil},
		{"a header after empty lines", "\n\nseconds,cost\n1\n", []string{"1s*1"}, nil},
		{"a header comes once", "seconds\nseconds\n", nil, []string{`2: seconds "seconds": ` + notNumber}},
		{"a header comes first", "1\nseconds,cost\n", []string{"1s*1"}, []string{`2: seconds "seconds": ` + notNumber}},
		{"another header", "time,cost\n1\n", []string{"1s*1"}, []string{`1: seconds "time": ` + notNumber}},
		{"no cost", "1\n2,\n", []string{"1s*1", "2s*1"}, nil},
		{"no end of line", "1,2", []string{"1s*2"}, nil},
		{"blanks and quotes", " 1 , 2 \n\"3\",\" 4 \"\n", []string{"1s*2", "3s*4"}, nil},
		{"empty lines", "1\n\n \r\n2\n", []string{"1s*1", "2s*1"}, nil},
		{"fractions", "0.5\n.25\n3.\n1700000000.123456789\n", []string{"250ms*1", "500ms*1", "3s*1", "472222h13m20.123456789s*1"}, nil},
		{"put in order", "2,1\n1,1\n2,2\n1,2\n", []string{"1s*1", "1s*2", "2s*1", "2s*2"}, nil},
		{"seconds", "-1\n1e3\n1s\n\"\"\n.\n1.2.3\nNaN\n0x1\n,2\n7\n", []string{"7s*1"}, []string{
			`1: seconds "-1": ` + notNumber, `2: seconds "1e3": ` + notNumber, `3: seconds "1s": ` + notNumber,
			`5: seconds ".": ` + notNumber, `6: seconds "1.2.3": ` + notNumber, `7: seconds "NaN": ` + notNumber,
			`8: seconds "0x1": ` + notNumber, `9: seconds "": ` + notNumber,
		}},
		{"late", "4000000000\n4000000001\n99999999999999999999\n", []string{"1111111h6m40s*1"}, []string{
			`2: seconds "4000000001": must be at most 4000000000`,
			`3: seconds "99999999999999999999": must be at most 4000000000`,
		}},
		{"costs", "1,0\n1,-1\n1,1.5\n1,x\n1,1000001\n1,1000000\n", []string{"1s*1000000"}, []string{
			`1: cost "0": ` + notCost, `2: cost "-1": ` + notCost, `3: cost "1.5": ` + notCost,
			`4: cost "x": ` + notCost, `5: cost "1000001": ` + notCost,
		}},
		{"a duration", "1h2\n1m\n", nil, []string{`1: seconds "1h2": ` + notNumber, `2: seconds "1m": ` + notNumber}},
		{"fields", "1,2,3\n1;2\n", nil, []string{"1: 3 fields: must be seconds,cost", `2: seconds "1;2": ` + notNumber}},
		{"a long value", strings.Repeat("x", 100) + "\n", nil,
			[]string{`1: seconds "` + strings.Repeat("x", 40) + `": ` + notNumber}},
		{"a long line", "1\n" + strings.Repeat(" ", 3*maxLine) + "5\n2\n", []string{"1s*1", "2s*1"}, []string{"2: longer than 4096 bytes"}},
		{"a long line at the end", strings.Repeat("5", maxLine+1), nil, []string{"1: longer than 4096 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
				calls, reported, err := read(in)
				require.NoError(t, err)
				assert.Equal(t, test.calls, calls)
				assert.Equal(t, test.reported, reported)
			}
		})
	}
}

func TestCSVIsBounded(t *testing.T) {
	malformed := 0
	count := func(int, error) { malformed++ }
	calls, err := readCSV(strings.NewReader(strings.Repeat("1\n", maxCalls)+"x\n"), count)
	require.NoError(t, err)
	assert.Len(t, calls, maxCalls)
	assert.Equal(t, 1, malformed)

	_, err = readCSV(strings.NewReader("seconds\n"+strings.Repeat("1\n", maxCalls+1)), count)
	assert.EqualError(t, err, "line 100002: more than 100000 calls")
}

// A line that broke off may be half a number.
func TestCSVReadError(t *testing.T) {
	broken := errors.New("broken")
	calls, reported, err := read(io.MultiReader(strings.NewReader("1\n2"), iotest.ErrReader(broken)))
	assert.Equal(t, broken, err)
	assert.Empty(t, calls)
	assert.Empty(t, reported)
}

// FuzzCSV checks that each line stands for itself: the whole is what its lines are one
// by one.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"seconds,cost\n1,2\n", "\uFEFF1\r\n\r\n2,3", "0.5\n.\n,\n\"1\",\"2\"\n", "seconds\nseconds\n", "9999999999\n1,\xff\n", "\r", "\"\n\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		calls, reported, err := read(strings.NewReader(string(in)))
		require.NoError(t, err)
		var want []arrival
		var bad []string
		begun := false
		for i, line := range strings.Split(strings.TrimPrefix(string(in), "\uFEFF"), "\n") {
			if len(line) >= maxLine-len("\uFEFF") {
				return // it may be too long
			}
			fields := split(line)
			if len(fields) == 1 && fields[0] == "" {
				continue
			}
			if !begun && isHeader(fields) {
				begun = true
				continue
			}
			begun = true
			call, err := parseCall(fields)
			if err != nil {
				bad = append(bad, fmt.Sprintf("%d: %v", i+1, err))
				continue
			}
			require.True(t, call.at >= 0 && call.at <= maxSeconds*time.Second && call.cost >= 1 && call.cost <= maxCost)
			want = append(want, call)
		}
		require.Equal(t, bad, reported)
		require.Len(t, calls, len(want))
		for i, a := range sorted(want) {
			require.Equal(t, fmt.Sprintf("%v*%d", a.at, a.cost), calls[i])
		}
	})
}
