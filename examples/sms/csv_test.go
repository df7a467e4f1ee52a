package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readAll returns everything that a reader makes of in, and the error it ends with.
func readAll(in io.Reader) (entries []entry, err error) {
	r := newCSVReader(in)
	for {
		e, err := r.next()
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
}

// describe writes entries as "line: text" or "first-last: text", bad ones with their
// reason in brackets.
func describe(entries []entry) (list []string) {
	for _, e := range entries {
		where := fmt.Sprint(e.first)
		if e.last != e.first {
			where = fmt.Sprintf("%d-%d", e.first, e.last)
		}
		if e.bad != nil {
			list = append(list, fmt.Sprintf("%s: [%v]", where, e.bad))
		} else {
			list = append(list, fmt.Sprintf("%s: %s", where, e.text))
		}
	}
	return list
}

func TestCSV(t *testing.T) {
	long := strings.Repeat("x", maxRecord)
	for _, test := range []struct {
		name string
		in   string
		want []string
	}{
		{"nothing", "", nil},
		{"only a header", "to,text\n", nil},
		{"no header", "100,a\n200,b\n", []string{"1: a", "2: b"}},
		{"a header", "to,text\n100,a\n", []string{"2: a"}},
		{"a header in other clothes", "\uFEFF\"To\" , TEXT\r\n100,a\r\n", []string{"1: [the quotes do not match; noticed in column 4]", "2: a"}},
		{"a header of a spreadsheet", "\uFEFF\"To\", TEXT\r\n100,a\r\n", []string{"2: a"}},
		{"a header after empty lines", "\n\nto,text\n100,a\n", []string{"4: a"}},
		{"a header comes once", "to,text\nto,text\n", []string{"2: [the recipient is not a phone number]"}},
		{"a header comes first", "100,a\nto,text\n", []string{"1: a", "2: [the recipient is not a phone number]"}},
		{"no end of line", "100,a", []string{"1: a"}},
		{"ends of line of Windows", "100,a\r\n200,\"b\r\nc\"\r\n300,d", []string{"1: a", "2-3: b\nc", "4: d"}},
		{"empty lines", "100,a\n\n\r\n200,b\n\n", []string{"1: a", "4: b"}},
		{"a blank is not empty", "100,a\n \n200,b\n", []string{"1: a", "2: [1 field, not 2: to,text]", "3: b"}},
		{"a comma in quotes", "100,\"a, b\"\n", []string{"1: a, b"}},
		{"quotes in quotes", "100,\"a \"\"b\"\" c\"\n", []string{`1: a "b" c`}},
		{"lines in quotes", "100,\"a\n\n\nb\"\n200,c\n", []string{"1-4: a\n\n\nb", "5: c"}},
		{"an empty text", "100,\n200,\"\"\n", []string{"1: ", "2: "}},
		{"blanks of a text stay", "100, a \n", []string{"1:  a "}},
		{"fields", "100\n100,a,b\n200,c\n", []string{
			"1: [1 field, not 2: to,text]",
			"2: [3 fields, not 2; a text with a comma needs quotes]",
			"3: c",
		}},
		{"no recipient", ",a\n  ,b\n\"\",c\n100,d\n", []string{
			"1: [no recipient]", "2: [no recipient]", "3: [no recipient]", "4: d",
		}},
		{"not UTF-8", "100,a\xff\n\xfe00,b\n300,c\n", []string{"1: [not valid UTF-8]", "2: [not valid UTF-8]", "3: c"}},
		{"a bare quote", "100,5\" disk\n200,b\n", []string{
			"1: [a quote in column 6, inside a field that does not begin with one]", "2: b",
		}},
		{"two bare quotes", "100,a \"b\" c\n200,d\n", []string{
			"1: [a quote in column 7, inside a field that does not begin with one]", "2: d",
		}},
		{"a bare quote, and texts in quotes below", "100,5\" disk\n200,\"b\"\n300,\"c\nd\"\n400,e\n", []string{
			"1: [a quote in column 6, inside a field that does not begin with one]", "2: b", "3-4: c\nd", "5: e",
		}},
		{"text behind a quote", "100,\"a\"b\n200,c\n", []string{
			"1: [the quotes do not match; noticed in column 7]", "2: c",
		}},
		{"a quote that is never closed", "100,\"a\n200,b\n300,c\n", []string{"1: [a quote is not closed]", "2: b", "3: c"}},
		{"a quote that is not closed, and one below", "100,\"a\n200,b\n300,\"c, d\"\n400,e\n", []string{
			"1: [a quote is not closed]", "2: b", "3: c, d", "4: e",
		}},
		{"a broken text of several lines", "100,\"a\nsay \"b\", now\nc\"\n200,d\n", []string{
			"1: [the quotes of a text of several lines do not match]",
			"2: [a quote in column 5, inside a field that does not begin with one]",
			"3: [a quote in column 2, inside a field that does not begin with one]",
			"4: d",
		}},
		{"a piece of a broken text is no message", "100,\"a \"b\nc, d\n200,e\n", []string{
			"1: [the quotes do not match; noticed in column 8]",
			"2: [the recipient is not a phone number]",
			"3: e",
		}},
		{"a long line", "100," + long + "\n200,b\n", []string{"1: [longer than 64 KiB]", "2: b"}},
		{"a very long line", "100," + strings.Repeat(long, 20) + "\n200,b\n", []string{"1: [longer than 64 KiB]", "2: b"}},
		{"a long line in the end", "100,a\n200," + long, []string{"1: a", "2: [longer than 64 KiB]"}},
		{"a long line behind an open quote", "100,\"a\n" + long + "\n200,b\n", []string{
			"1: [a quote is not closed]", "2: [longer than 64 KiB]", "3: b",
		}},
		{"a quote that is closed too late", "100,\"a\n" + strings.Repeat("200,b\n", maxRecord/6) + "\"\n300,c\n",
			append(append([]string{"1: [a quote is not closed]"}, numbered(2, maxRecord/6, "b")...),
				fmt.Sprintf("%d: [a quote is not closed]", maxRecord/6+2), fmt.Sprintf("%d: c", maxRecord/6+3))},
		{"a text of too many parts", "100," + strings.Repeat("y", 255*153) + "\n200," + strings.Repeat("y", 255*153+1) + "\n", []string{
			"1: " + strings.Repeat("y", 255*153), "2: [the text has 256 parts, more than 255]",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries, err := readAll(strings.NewReader(test.in))
			assert.Equal(t, io.EOF, err)
			assert.Equal(t, test.want, describe(entries))
			if len(test.in) < 1000 {
				entries, err = readAll(iotest.OneByteReader(strings.NewReader(test.in)))
				assert.Equal(t, io.EOF, err)
				assert.Equal(t, test.want, describe(entries), "byte by byte")
			}
		})
	}
}

func numbered(first, n int, text string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%d: %s", first+i, text))
	}
	return list
}

// A line that breaks off in a read error may be half a message.
func TestCSVReadError(t *testing.T) {
	broken := errors.New("broken")
	for in, want := range map[string][]string{
		"":                      nil,
		"100,a\n":               {"1: a"},
		"100,a\n200,b":          {"1: a"},
		"100,a\n200,\"b\nc":     {"1: a", "2: [a quote is not closed]"},
		"100,a\n200,\"b\nc\"":   {"1: a", "2: [a quote is not closed]"},
		"100,a\n200,\"b\n3,c\n": {"1: a", "2: [a quote is not closed]", "3: [the recipient is not a phone number]"},
	} {
		entries, err := readAll(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)))
		assert.Equal(t, broken, err)
		assert.Equal(t, want, describe(entries), "%q", in)
	}
}

func TestCSVMemoryIsBounded(t *testing.T) {
	const messages = 25_000
	in := strings.NewReader("100,\"open\n" + strings.Repeat("100,a\n", messages))
	r := newCSVReader(in)
	for n := 0; ; n++ {
		if _, err := r.next(); err == io.EOF {
			assert.Equal(t, messages+1, n)
			break
		}
		require.Less(t, len(r.ahead), 2*maxRecord)
		require.Less(t, cap(r.ahead), 8*maxRecord)
	}
}

func TestCSVCountsBytes(t *testing.T) {
	entries, _ := readAll(iotest.OneByteReader(strings.NewReader("\uFEFF100,a\n200,b\n")))
	require.Len(t, entries, 2)
	assert.EqualValues(t, 9, entries[0].read)
	assert.EqualValues(t, 15, entries[1].read)
}

// The reasons are printed on terminals and end in logs.
func TestReasonsQuoteNothing(t *testing.T) {
	entries, _ := readAll(strings.NewReader("SECRET\nSECRET,a,b\n,SECRET\nSECRET,x\n1\"SECRET,b\n1,\"SECRET\"SECRET\n100,\"SECRET\xff\"\n,\"SECRET"))
	require.Len(t, entries, 8)
	for _, e := range entries {
		require.Error(t, e.bad)
		assert.NotContains(t, e.bad.Error(), "SECRET")
	}
}

func TestIsNumber(t *testing.T) {
	for s, want := range map[string]bool{
		"+447700900101": true, "447700900101": true, "+44 7700 900-101": true, "(202) 555.0101": true, "+49 30/901820": true,
		"112": true, "+123456789012345": true,
		"": false, "+": false, "12": false, "+1234567890123456": false, "++123": false, "1+23": false, "you": false,
		"12a45": false, "१२३४५": false, "1 2\n3": false, "---": false,
	} {
		assert.Equal(t, want, isNumber(s), s)
	}
}

func TestSampleIsWellFormed(t *testing.T) {
	entries, err := readAll(strings.NewReader(sample))
	assert.Equal(t, io.EOF, err)
	assert.Len(t, entries, 28)
	parts := 0
	for _, e := range entries {
		assert.NoError(t, e.bad)
		parts += e.parts
	}
	assert.Equal(t, 32, parts)
}
