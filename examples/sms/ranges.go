package main

import (
	"fmt"
	"strings"
)

// maxRanges bounds what is kept, and printed, of a list of places.
const maxRanges = 20

// A ranges is a list of lines that were added in ascending order, such as
// "3, 7-12".
type ranges struct {
	spans [][2]int
	more  int // entries that begin beyond the last span
}

// add adds the lines first to last.
func (r *ranges) add(first, last int) {
	n := len(r.spans)
	switch {
	case r.more > 0:
		r.more++
	case n > 0 && r.spans[n-1][1]+1 == first:
		r.spans[n-1][1] = last
	case n < maxRanges:
		r.spans = append(r.spans, [2]int{first, last})
	default:
		r.more++
	}
}

func (r *ranges) String() string {
	var list []string
	for _, s := range r.spans {
		if s[0] == s[1] {
			list = append(list, fmt.Sprint(s[0]))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", s[0], s[1]))
		}
	}
	text := strings.Join(list, ", ")
	if r.more > 0 {
		text += fmt.Sprintf(" and %d more", r.more)
	}
	return text
}
