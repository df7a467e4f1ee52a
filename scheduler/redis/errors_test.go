package redis

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/shaper"
)

// Errors of one name in two packages match each other.
func TestErrClosedOfAllPackages(t *testing.T) {
	assert.ErrorIs(t, ErrClosed, shaper.ErrClosed)
	assert.ErrorIs(t, queue.ErrClosed, ErrClosed)
	assert.NotErrorIs(t, ErrClosed, shaper.ErrCost)
}

// A Shaper that refuses because the store is away tells so in the word for labels.
func TestLabelOfUnavailable(t *testing.T) {
	err := &UnavailableError{Store: "a:1", Err: errors.New("away")}
	assert.Equal(t, "unavailable", (&shaper.Refusal{Reason: err}).Label())
}
