package queue_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Over any distance a source of batches is drained at the pace, a slot for each message, with never
// more in hand than leave during a fetch, and one. A plain one is drained as fast as it can be asked.
func TestPaceOverADistance(t *testing.T) {
	const tail = 500 * time.Microsecond // it ends at no instant at which a slot is due
	for _, fetch := range []time.Duration{0, 1, 6, 20, 50, 200} {
		for _, perSecond := range []int64{10, 100, 1000} {
			for _, batch := range []int{0, 1} {
				fetch := fetch * ms
				t.Run(fmt.Sprintf("%v,%d/s,batch=%d", fetch, perSecond, batch), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						line := newShaper(t, scheduler.PerSecond(perSecond))
						b := newBroker(line, int(perSecond)*70)
						b.fetch, b.batch, b.lease = fetch, batch, 30*time.Second
						over := 60 * time.Second
						if perSecond == 1000 {
							over = 20 * time.Second
						}
						ctx, cancel := context.WithTimeout(t.Context(), over+time.Second-tail)
						defer cancel()
						err := queue.Drain(ctx, line, b, queue.WithWorkers(100))
						require.Equal(t, context.DeadlineExceeded, err)

						T := time.Second / time.Duration(perSecond)
						for i := range b.started[1:] {
							require.GreaterOrEqual(t, b.started[i+1]-b.started[i], T-5*ms)
						}
						// In the first second it learns how long a fetch takes.
						learnt, _ := slices.BinarySearch(b.started, time.Second)
						could := float64(perSecond) * over.Seconds()
						if batch == 1 && fetch > 0 {
							could = min(could, over.Seconds()/fetch.Seconds())
						}
						share := float64(len(b.started)-learnt) / could
						assert.GreaterOrEqual(t, share, 0.99)
						assert.EqualValues(t, len(b.started), line.Stats().Left, "a slot for each")
						most := int(math.Ceil(float64(perSecond)*fetch.Seconds())) + 1
						assert.LessOrEqual(t, b.most, most, "in hand")
						assert.Empty(t, b.twice())
						t.Logf("%5.1f %% of %4.0f, in hand %3d of %3d, %d takes, %d returned", 100*share, could, b.most, most, b.takes, len(b.returned))
					})
				})
			}
		}
	}
}
