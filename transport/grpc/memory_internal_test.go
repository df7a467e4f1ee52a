package grpcpace

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/feedback"
)

type ready struct{}

func (ready) Wait(context.Context, string) error { return nil }

// Keys that were refused are bounded, and those whose hold is long over make room.
func TestRefusedKeysAreBounded(t *testing.T) {
	p := NewKeyed(nil, ready{})
	now := time.Now()
	refuse := func(key string, at time.Time) {
		p.refuse(&passage{key: key}, feedback.Verdict{Refused: true, Stated: true, Wait: time.Second}, at)
	}
	for i := range maxRefused + 10 {
		refuse(strconv.Itoa(i), now)
	}
	require.Len(t, p.memory.keys, maxRefused)
	refuse("late", now.Add(forgetAfter+2*time.Second))
	require.Len(t, p.memory.keys, 1)
	require.EqualValues(t, 1, p.memory.size.Load())
}
