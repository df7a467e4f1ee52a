package svg

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 10: "10", 1.5: "1.5", -2.25: "-2.25", 1. / 3: "0.33", 100: "100", -.001: "-0"} {
		assert.Equal(t, want, Number(x))
	}
}
