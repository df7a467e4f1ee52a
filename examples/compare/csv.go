package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxCalls   = 100_000
	maxCost    = 1_000_000
	maxSeconds = 4_000_000_000 // Unix times fit, and a century of waiting after them
	maxLine    = 4096          // bytes
)

// readCSV reads calls, seconds,cost in each line, and returns them in order of time.
// A line that makes no sense is reported and left out. The error says why the input
// as a whole is of no use.
func readCSV(in io.Reader, malformed func(line int, err error)) ([]arrival, error) {
	r := bufio.NewReaderSize(in, maxLine)
	var calls []arrival
	begun := false // a line was not empty, so no header comes any more
	for number := 1; ; number++ {
		text, tooLong, err := readLine(r)
		if err != nil && err != io.EOF {
			return nil, err // the line broke off
		}
		if number == 1 {
			// A byte order mark, as spreadsheets write it, is no part of a field.
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		fields := split(text)
		switch {
		case tooLong:
			malformed(number, fmt.Errorf("longer than %d bytes", maxLine))
		case len(fields) == 1 && fields[0] == "":
			if err == io.EOF {
				return sorted(calls), nil
			}
			continue
		case !begun && isHeader(fields):
		default:
			call, bad := parseCall(fields)
			switch {
			case bad != nil:
				malformed(number, bad)
			case len(calls) == maxCalls:
				return nil, fmt.Errorf("line %d: more than %d calls", number, maxCalls)
			default:
				calls = append(calls, call)
			}
		}
		begun = true
		if err == io.EOF {
			return sorted(calls), nil
		}
	}
}

// sorted puts calls in order of time. Those of one time stay in their order.
func sorted(calls []arrival) []arrival {
	slices.SortStableFunc(calls, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// readLine returns the next line without its end. Of one that is too long it keeps
// nothing.
func readLine(r *bufio.Reader) (text string, tooLong bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			tooLong = true
			continue
		}
		if tooLong {
			piece = nil
		}
		return string(bytes.TrimSuffix(piece, []byte("\n"))), tooLong, err
	}
}

// split returns the fields of a line. Blanks around them are no part of them, nor are
// quotes, which some programs put around every field.
func split(text string) []string {
	fields := strings.Split(text, ",")
	for i, f := range fields {
		f = strings.TrimSpace(f)
		if len(f) > 1 && f[0] == '"' && f[len(f)-1] == '"' {
			f = strings.TrimSpace(f[1 : len(f)-1])
		}
		fields[i] = f
	}
	return fields
}

func isHeader(fields []string) bool {
	return strings.EqualFold(fields[0], "seconds") &&
		(len(fields) == 1 || len(fields) == 2 && strings.EqualFold(fields[1], "cost"))
}

func parseCall(fields []string) (arrival, error) {
	if len(fields) > 2 {
		return arrival{}, fmt.Errorf("%d fields: must be seconds,cost", len(fields))
	}
	at, err := parseSeconds(fields[0])
	if err != nil {
		return arrival{}, fmt.Errorf("seconds %.40q: %w", fields[0], err)
	}
	call := arrival{at, 1}
	if len(fields) == 2 && fields[1] != "" {
		call.cost, err = strconv.ParseInt(fields[1], 10, 64)
		if err != nil || call.cost < 1 || call.cost > maxCost {
			return arrival{}, fmt.Errorf("cost %.40q: must be a whole number from 1 to %d", fields[1], maxCost)
		}
	}
	return call, nil
}

// parseSeconds goes by way of a Duration's text, not of a float: that of a Unix time
// is a quarter of a microsecond off.
func parseSeconds(text string) (time.Duration, error) {
	if strings.Trim(text, "0123456789.") != "" {
		return 0, errors.New("must be a number such as 0, 12 or 1.25")
	}
	at, err := time.ParseDuration(text + "s")
	switch {
	case err != nil && strings.Trim(text, "0123456789") == "" && text != "", at > maxSeconds*time.Second:
		return 0, fmt.Errorf("must be at most %d", int64(maxSeconds))
	case err != nil:
		return 0, errors.New("must be a number such as 0, 12 or 1.25")
	}
	return at, nil
}
