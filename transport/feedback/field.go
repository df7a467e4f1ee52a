package feedback

import (
	"iter"
	"net/http"
	"slices"
	"strings"
)

// What a field may hold, all its lines together, before it counts as absent. What is
// read here takes a few values of a few dozen bytes.
const (
	maxField  = 4 << 10 // bytes
	maxValues = 64      // lines and commas
)

// field returns the lines of a header field, none if they are too long or too many.
func field(h http.Header, name string) []string {
	lines := h.Values(name)
	size, values := 0, len(lines)
	if values > maxValues {
		return nil
	}
	for _, line := range lines {
		size += len(line)
		if size > maxField {
			return nil
		}
		values += strings.Count(line, ",")
	}
	if values > maxValues {
		return nil
	}
	return lines
}

// elements yields the values of a field: those of its lines, which may each hold
// several between commas (a proxy may have joined lines). The comma behind the day of
// the week belongs to the date.
//
// A comma with a digit on both sides, as in "1,000" or "1,5", may be part of a number, so
// that taking it for a list would read too short a time: such a field has no values at
// all. A proxy that joins lines puts a space behind the comma: "120, 60" is a list.
func elements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if slices.ContainsFunc(lines, commaInNumber) {
			return
		}
		for _, line := range lines {
			for more := true; more; {
				var element string
				element, line, more = cutElement(line)
				if element != "" && !yield(element) {
					return
				}
			}
		}
	}
}

func commaInNumber(line string) bool {
	for i := 1; i < len(line)-1; i++ {
		if line[i] == ',' && digits(line[i-1:i]) && digits(line[i+1:i+2]) {
			return true
		}
	}
	return false
}

func cutElement(line string) (element, rest string, more bool) {
	end := strings.IndexByte(line, ',')
	if end >= 0 && isWeekday(trim(line[:end])) {
		if next := strings.IndexByte(line[end+1:], ','); next >= 0 {
			end += 1 + next
		} else {
			end = -1
		}
	}
	if end < 0 {
		return trim(line), "", false
	}
	return trim(line[:end]), line[end+1:], true
}

// trim takes off what RFC 9110 calls optional whitespace.
func trim(s string) string { return strings.Trim(s, " \t") }

func isWeekday(s string) bool {
	switch s {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
		"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday":
		return true
	}
	return false
}
