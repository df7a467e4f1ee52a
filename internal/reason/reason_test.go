package reason_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/internal/reason"
)

func TestError(t *testing.T) {
	mine := reason.New("mine", "closed", "closed for today")
	yours := reason.New("yours", "closed", "shut")
	full := reason.New("mine", "full", "full")

	assert.EqualError(t, mine, "mine: closed for today")
	assert.ErrorIs(t, mine, yours)
	assert.ErrorIs(t, fmt.Errorf("wrapped: %w", yours), mine)
	assert.NotErrorIs(t, full, mine)
	assert.NotErrorIs(t, mine, errors.New("mine: closed for today"))
	assert.NotErrorIs(t, mine, nil)
}

func TestLabel(t *testing.T) {
	assert.Equal(t, "full", reason.Label(reason.New("p", "full", "full")))
	assert.Equal(t, "full", reason.Label(errors.Join(errors.New("x"), fmt.Errorf("%w", reason.New("p", "full", "full")))))
	assert.Equal(t, "other", reason.Label(errors.New("x")))
	assert.Equal(t, "other", reason.Label(nil))
}

func TestRound(t *testing.T) {
	for from, want := range map[time.Duration]string{
		0:                       "0s",
		1:                       "1ns",
		999_999:                 "999.999µs",
		1_234_567:               "1.235ms",
		-1_234_567:              "-1.235ms",
		59_999_999_999:          "1m0s",
		1_234_567_890:           "1.235s",
		3_599_999_400_000:       "59m59.999s",
		3_601_499_999_999:       "1h0m1s",
		math.MaxInt64:           "2562047h47m16.854775807s",
		math.MinInt64:           "-2562047h47m16.854775808s",
		time.Hour + time.Minute: "1h1m0s",
	} {
		assert.Equal(t, want, reason.Round(from).String())
	}
}
