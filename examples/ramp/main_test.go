package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// Each day has its limit, whole: what waits leaves by the new one at once.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs strings.Builder
		assert.Equal(t, 0, run([]string{"-day", "24h", "-days", "7"}, &out, &errs))
		assert.Empty(t, errs.String())
		assert.Equal(t, `day  limit  sent
  1     10    10
  2     15    15
  3     23    23
  4     35    35
  5     53    53
  6     80    80
  7    100   100
`, out.String())
	})
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-first 0", "-full 1", "-days 0", "-day 0", "-x", "more"} {
		var out, errs strings.Builder
		assert.Equal(t, 2, run(strings.Fields(args), &out, &errs), args)
		assert.NotEmpty(t, errs.String())
	}
}
