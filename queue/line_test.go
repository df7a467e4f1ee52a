package queue

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The ring against a slice, with sizes that make it grow, wrap and shrink.
func TestLineIsAFIFO(t *testing.T) { trial.Run(t, 3, lineIsAFIFO) }

func lineIsAFIFO(t *testing.T, rnd *rand.Rand) {
	var l line
	var model []int
	var popped int
	next := 0
	for range 2_000 {
		// The mean drifts up and down, so the line becomes long and short.
		if rnd.IntN(200) < 100+((next/400)%2*40-20) {
			id := next
			l.push(func(context.Context) error { popped = id; return nil })
			model = append(model, id)
			next++
		} else if len(model) > 0 {
			require.NoError(t, l.pop()(context.Background()))
			require.Equal(t, model[0], popped)
			model = model[1:]
		}
		require.Equal(t, len(model), l.len())
		require.LessOrEqual(t, len(l.ring), max(minLine, 4*l.len()+4))
		// Whatever is not in the line is not pinned by it.
		live := 0
		for _, j := range l.ring {
			if j != nil {
				live++
			}
		}
		require.Equal(t, l.len(), live)
	}
	all := l.takeAll()
	require.Len(t, all, len(model))
	for i, j := range all {
		require.NoError(t, j(context.Background()))
		require.Equal(t, model[i], popped)
	}
	assert.Zero(t, l.len())
	assert.Nil(t, l.takeAll())
}

func TestLineGivesMemoryBack(t *testing.T) {
	var l line
	job := func(context.Context) error { return nil }
	for range 1 << 17 {
		l.push(job)
	}
	for l.len() > 0 {
		l.pop()
	}
	assert.LessOrEqual(t, len(l.ring), minLine)
	runtime.KeepAlive(&l)
}
