package sluice_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// Errors of one name in two packages match each other, and no others.
func TestErrorsOfOneName(t *testing.T) {
	byName := map[string][]error{
		"ErrClosed":      {shaper.ErrClosed, queue.ErrClosed},
		"ErrMaxDelay":    {shaper.ErrMaxDelay, transport.ErrMaxDelay},
		"ErrCost":        {shaper.ErrCost, transport.ErrCost},
		"ErrQueueFull":   {shaper.ErrQueueFull},
		"ErrDeadline":    {shaper.ErrDeadline},
		"ErrTooManyKeys": {shaper.ErrTooManyKeys},
		"ErrFull":        {queue.ErrFull},
		"ErrNotSent":     {transport.ErrNotSent},
	}
	for name, errs := range byName {
		for _, err := range errs {
			for other, targets := range byName {
				for _, target := range targets {
					assert.Equal(t, name == other, errors.Is(err, target), "%v, %v", err, target)
				}
			}
		}
	}
	s := shaper.MustNew(scheduler.PerSecond(1))
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.Wait(context.Background()), queue.ErrClosed)
}
