package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRanges(t *testing.T) {
	for _, test := range []struct {
		lines [][2]int
		want  string
	}{
		{nil, ""},
		{[][2]int{{3, 3}}, "3"},
		{[][2]int{{3, 3}, {4, 4}}, "3-4"},
		{[][2]int{{3, 3}, {5, 5}}, "3, 5"},
		{[][2]int{{3, 3}, {4, 6}, {7, 7}, {9, 9}}, "3-7, 9"},
		{[][2]int{{4, 6}}, "4-6"},
	} {
		var r ranges
		for _, l := range test.lines {
			r.add(l[0], l[1])
		}
		assert.Equal(t, test.want, r.String())
	}
}

func TestRangesAreBounded(t *testing.T) {
	var r ranges
	for i := range 1000 {
		r.add(3*i+1, 3*i+1)
		r.add(3*i+2, 3*i+2)
	}
	assert.Len(t, r.spans, maxRanges)
	assert.Contains(t, r.String(), "58-59 and 1960 more")
}
