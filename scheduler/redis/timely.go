package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A reading is what the clock of the server showed, and when that was heard.
type reading struct {
	heard  time.Time
	server int64 // microseconds
}

// timely runs a script that does nothing if it comes too late: a server that hangs has
// requests in its buffers whose senders have long given up, and does them all when it
// goes on. expires is appended to args. The script replies the given count of numbers,
// its present as the first, and -1 as the one at the place granted if it was too late.
func (l *link) timely(ctx context.Context, s *goredis.Script, keys []string, args []any, count, granted int) ([]int64, error) {
	for {
		expires := int64(0) // never, for all that is known
		clock := l.clock.Load()
		if clock != nil {
			expires = clock.server + time.Since(clock.heard).Microseconds() + 2*l.timeout.Microseconds()
		}
		got, err := l.eval(ctx, s, keys, append(args[:len(args):len(args)], expires))
		if err != nil {
			return nil, err
		}
		if len(got) != count {
			return nil, fmt.Errorf("redis: the step replied %d numbers", len(got))
		}
		l.clock.Store(&reading{time.Now(), got[0]})
		if got[granted] >= 0 {
			return got, nil
		}
		if clock == nil {
			return nil, errTimeout
		}
		// It was in time: the server has another clock than before.
	}
}
