package precise

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/internal/trial"
)

func TestLeadCoversThreeOfFourWakeUps(t *testing.T) { trial.Run(t, 1, leadCovers) }

func leadCovers(t *testing.T, rng *rand.Rand) {
	var l lead
	wake := func() int64 { return 30_000 + rng.Int64N(20_000) }
	for range 1000 {
		l.note(wake())
	}
	inTime := 0
	for range 10_000 {
		late := wake()
		if late <= l.ns {
			inTime++
		}
		l.note(late)
	}
	assert.InDelta(t, 7500, inTime, 300)
}

func TestLeadIsBounded(t *testing.T) {
	var l lead
	for range 1000 {
		l.note(1 << 60)
	}
	assert.EqualValues(t, maxLead, l.ns)
	for range 1000 {
		l.note(0)
	}
	assert.Zero(t, l.ns)
}
