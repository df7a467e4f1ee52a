package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const want = `15 calls at 0 s, 2/s, capacity 10

call  meter             shaper
   1  0.0 s             0.0 s
   2  0.0 s             0.5 s
   3  0.0 s             1.0 s
   4  0.0 s             1.5 s
   5  0.0 s             2.0 s
   6  0.0 s             2.5 s
   7  0.0 s             3.0 s
   8  0.0 s             3.5 s
   9  0.0 s             4.0 s
  10  0.0 s             4.5 s
  11  refused (0.5 s)   refused (5.0 s)
  12  refused (0.5 s)   refused (5.0 s)
  13  refused (0.5 s)   refused (5.0 s)
  14  refused (0.5 s)   refused (5.0 s)
  15  refused (0.5 s)   refused (5.0 s)

meter   10 .  .  .  .  .  .  .  .  .  .
shaper  1  1  1  1  1  1  1  1  1  1  .
s       0     1     2     3     4     5     (calls that pass in each half second)

meter   10 admitted, 5 refused, the last one at 0.0 s
shaper  10 admitted, 5 refused, the last one at 4.5 s
`

func TestTrace(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	assert.Equal(t, want, out.String())
}
