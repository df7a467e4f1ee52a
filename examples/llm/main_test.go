package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// All questions are answered and none is refused, with and without settling.
func TestLLM(t *testing.T) {
	var out, errs strings.Builder
	assert.Equal(t, 0, run([]string{"-n", "12"}, &out, &errs))
	assert.Empty(t, errs.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	assert.Regexp(t, `^settled +12 +0 +\d+ `, lines[1])
	assert.Regexp(t, `^reserved +12 +0 +\d+ `, lines[2])
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-n 0", "-x", "more"} {
		var out, errs strings.Builder
		assert.Equal(t, 2, run(strings.Fields(args), &out, &errs), args)
		assert.NotEmpty(t, errs.String())
	}
}
