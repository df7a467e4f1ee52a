package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRecord is the longest record in bytes, and how far the search for the end of
// an open quote goes. Longer than any text that can be sent, short enough to keep.
const maxRecord = 64 << 10

// An entry is what the input has in one place: a message, or what is wrong there.
type entry struct {
	first, last int // lines, counted from 1
	to, text    string
	parts       int
	bad         error // nil for a message

	read int64 // bytes of the input that were read by then
}

// A csvReader reads messages from a CSV file, to,text in each record.
//
// It lets encoding/csv take records apart, but finds their ends by itself. A quote
// that is never closed would otherwise make one record of all the rest of the file,
// in memory; here it spoils its own line, and reading goes on with the next.
type csvReader struct {
	in    *bufio.Reader
	ahead []byte // whole lines that were read and are not consumed; bounded
	line  int    // number of the first line in ahead
	read  int64
	begun bool  // a record was read, so no header comes any more
	err   error // why there are no further lines
}

func newCSVReader(in io.Reader) *csvReader {
	return &csvReader{in: bufio.NewReader(in), line: 1}
}

// next returns the next entry. The error is io.EOF at the end, or says why the rest
// of the input could not be read.
func (r *csvReader) next() (entry, error) {
	for {
		record, lines := r.peek()
		if lines == 0 {
			return entry{}, r.err
		}
		fields, err := parse(record)
		e := entry{first: r.line, last: r.line + lines - 1, read: r.read}
		switch {
		case err == io.EOF: // an empty line
			r.consume(len(record), lines)
			continue
		case err != nil:
			// Only the first line is lost. If it lacks a closing quote, the next
			// ones are records.
			e.last = e.first
			e.bad = err
			r.consume(lineLength(record), 1)
		default:
			r.consume(len(record), lines)
			if !r.begun && isHeader(fields) {
				r.begun = true
				continue
			}
			e.to, e.text, e.parts, e.bad = check(fields)
		}
		r.begun = true
		return e, nil
	}
}

// peek returns the lines of the next record. The record ends with the first line
// after which the quotes are even in number: as long as a text in quotes goes on,
// they are odd. It gives up at the end of the input, or when the record gets longer
// than maxRecord.
func (r *csvReader) peek() (record []byte, lines int) {
	end, quotes := 0, 0
	for {
		if end == len(r.ahead) && !r.readLine() {
			return r.ahead[:end], lines
		}
		length := lineLength(r.ahead[end:])
		quotes += bytes.Count(r.ahead[end:end+length], []byte{'"'})
		end += length
		lines++
		if quotes%2 == 0 || end > maxRecord {
			return r.ahead[:end], lines
		}
	}
}

func (r *csvReader) consume(length, lines int) {
	r.ahead = r.ahead[length:]
	r.line += lines
}

// readLine adds a line of the input to ahead. Of a line that is too long it keeps
// as much as shows that.
func (r *csvReader) readLine() bool {
	if r.err != nil {
		return false
	}
	start := len(r.ahead)
	for {
		piece, err := r.in.ReadSlice('\n')
		if r.read == 0 {
			// A byte order mark, as spreadsheets write it, is no part of a field.
			r.read = int64(len(piece))
			piece = bytes.TrimPrefix(piece, []byte("\uFEFF"))
		} else {
			r.read += int64(len(piece))
		}
		room := start + maxRecord + 1 - len(r.ahead)
		r.ahead = append(r.ahead, piece[:min(len(piece), room)]...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == nil:
			if r.ahead[len(r.ahead)-1] != '\n' {
				r.ahead = append(r.ahead, '\n')
			}
			return true
		}
		r.err = err
		if err != io.EOF {
			// The line broke off. What is there of it must not be sent.
			r.ahead = r.ahead[:start]
		}
		return len(r.ahead) > start
	}
}

// lineLength returns the length of the first line of b with its end.
func lineLength(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

// parse returns the fields of a record, or io.EOF if it is an empty line. Errors
// quote nothing of the input, which is the number and the letter of a customer.
func parse(record []byte) ([]string, error) {
	first := record[:lineLength(record)]
	tooLong := len(record) > maxRecord
	if len(first) > maxRecord {
		return nil, fmt.Errorf("longer than %d KiB", maxRecord>>10)
	}
	if tooLong {
		record = first // which has an odd number of quotes, so this is an error
	}
	r := csv.NewReader(bytes.NewReader(record))
	r.FieldsPerRecord = -1
	fields, err := r.Read()
	parseError := (*csv.ParseError)(nil)
	switch {
	case !errors.As(err, &parseError):
		return fields, err
	case parseError.Err == csv.ErrBareQuote:
		return nil, fmt.Errorf("a quote in column %d, inside a field that does not begin with one", parseError.Column)
	case tooLong || bytes.Count(record, []byte{'"'})%2 == 1:
		return nil, errors.New("a quote is not closed")
	case parseError.Line > 1:
		return nil, errors.New("the quotes of a text of several lines do not match")
	}
	return nil, fmt.Errorf("the quotes do not match; noticed in column %d", parseError.Column)
}

func isHeader(fields []string) bool {
	return len(fields) == 2 &&
		strings.EqualFold(strings.TrimSpace(fields[0]), "to") &&
		strings.EqualFold(strings.TrimSpace(fields[1]), "text")
}
