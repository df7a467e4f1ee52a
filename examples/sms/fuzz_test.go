package main

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzCSV checks that nothing of an input gets lost: each of its lines is part of
// one entry, of the header, or empty. Where encoding/csv has no complaint about the
// input as a whole, both must find the same records in the same lines.
func FuzzCSV(f *testing.F) {
	f.Add([]byte(sample))
	for _, seed := range []string{
		"to,text\n100,a\n", "\uFEFFto,text\r\n100,\"a\r\nb\"\r\n", "100,\"a\n200,b\n", "100,5\" x\n200,\"b\"\n", "\"to\n\",text\n1\n",
		"\n\r\n100,\"a\"b\n,\n", "100,\xff\n", "\"", "\"\"\"\n\"", "100,a\r", "\r", "a\rb,c\n", "100,\"\n\n\n\"", "\uFEFF\uFEFF",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		entries, err := readAll(bytes.NewReader(in))
		require.Equal(t, io.EOF, err)
		again, err := readAll(iotest.HalfReader(bytes.NewReader(in)))
		require.Equal(t, io.EOF, err)
		require.Equal(t, describe(entries), describe(again), "it must not matter how the bytes come")

		text := strings.TrimPrefix(string(in), "\uFEFF")
		checkLines(t, strings.SplitAfter(text, "\n"), entries)
		checkRecords(t, text, entries)
	})
}

func checkLines(t *testing.T, lines []string, entries []entry) {
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	skipped := ""
	done := 0
	for i, e := range entries {
		require.Greater(t, e.first, done, "lines ascend")
		require.GreaterOrEqual(t, e.last, e.first)
		require.LessOrEqual(t, e.last, len(lines))
		if gap := strings.Join(lines[done:e.first-1], ""); i == 0 {
			skipped = gap
		} else {
			require.Empty(t, strings.Trim(gap, "\r\n"), "skipped between two entries")
		}
		done = e.last
	}
	rest := strings.Join(lines[done:], "")
	if len(entries) == 0 {
		skipped, rest = rest, ""
	}
	require.Empty(t, strings.Trim(rest, "\r\n"), "skipped at the end")

	// In front of the first entry there may be a header too.
	r := csv.NewReader(strings.NewReader(skipped))
	records, err := r.ReadAll()
	require.NoError(t, err)
	require.LessOrEqual(t, len(records), 1)
	for _, record := range records {
		require.True(t, isHeader(record))
	}
}

func checkRecords(t *testing.T, text string, entries []entry) {
	if len(text) > maxRecord {
		return // it might have records that are too long
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	var want []entry
	for header := true; ; header = false {
		fields, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return
		}
		if header && isHeader(fields) {
			continue
		}
		var e entry
		e.first, _ = r.FieldPos(0)
		e.to, e.text, e.parts, e.bad = check(fields)
		want = append(want, e)
	}
	require.Len(t, entries, len(want))
	for i, e := range want {
		e.last, e.read = entries[i].last, entries[i].read
		require.Equal(t, e, entries[i])
	}
}
