package fair

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

// When tags are counted anew, a call that was told before where it begins goes on in its turn.
func TestMarkFromBeforeTagsAreCountedAnew(t *testing.T) {
	s := New[int](1)
	s.SetRate(scheduler.Per(1, 1))
	var a, b, c Flow[int]
	s.Join(&a, most, most, 1, 1)
	s.Left(&a, most)
	s.Dry(&a, true)
	s.Join(&b, 1, 1, 1, 2)
	now := time.Duration(most - 10)
	s.Advance(now, true)
	mark := s.Mark(&b)
	require.NotZero(t, mark)
	s.Grow(&b, 1, 1)
	s.Advance(now+200, true)
	s.rebase()
	require.Less(t, s.v, mark, "all was counted anew")
	s.Left(&b, 1)
	s.Succeed(&b, 1, 0, 1, mark, 3)
	s.Join(&c, 5, 5, 1, 4)
	require.Same(t, &b, s.First())
}
