package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

// startSentinel watches a master, and returns the address of the sentinel.
func startSentinel(t *testing.T, master string) string {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server: ", err)
	}
	host, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	own := freePort(t)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `port %s
bind 127.0.0.1
sentinel monitor limits %s %s 1
sentinel down-after-milliseconds limits 500
sentinel failover-timeout limits 3000
`, own, host, port), 0o600))
	cmd := exec.Command(binary, conf, "--sentinel")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, says the error
	})
	return "127.0.0.1:" + own
}

// The master is killed, or replaced by plan: the limit goes on at the new one, and what it lets
// leave beside it is bounded by a burst and the runs in hand.
func TestSentinelFailover(t *testing.T) {
	for _, planned := range []bool{false, true} {
		t.Run(fmt.Sprintf("planned %v", planned), func(t *testing.T) {
			master, replica := realServer(t), realServer(t)
			host, port, err := net.SplitHostPort(master.Addr)
			require.NoError(t, err)
			require.NoError(t, client(t, replica.Addr).Do(t.Context(), "REPLICAOF", host, port).Err())
			at := startSentinel(t, master.Addr)
			sentinel := goredis.NewSentinelClient(&goredis.Options{Addr: at})
			t.Cleanup(func() { assert.NoError(t, sentinel.Close()) })
			require.Eventually(t, func() bool {
				all, err := sentinel.Replicas(t.Context(), "limits").Result()
				return err == nil && len(all) == 1 && all[0]["flags"] == "slave"
			}, eventually, 50*ms)

			c := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "limits", SentinelAddrs: []string{at}, DialTimeout: 500 * ms})
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
			r := scheduler.PerSecond(100)
			sched, err := redis.New(c, "sentinel", r, 1, redis.FailClosed())
			require.NoError(t, err)
			line, watched := watchedLine(t, sched, 0)
			ctx, stop := context.WithCancel(t.Context())
			var left atomic.Int64
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					for ctx.Err() == nil {
						if line.Wait(ctx) == nil {
							left.Add(1)
						} else {
							time.Sleep(10 * ms)
						}
					}
				})
			}
			defer all.Wait()
			defer stop()
			require.Eventually(t, func() bool { return left.Load() > 50 }, eventually, ms)
			if planned {
				require.NoError(t, sentinel.Failover(t.Context(), "limits").Err())
			} else {
				require.NoError(t, master.Kill())
			}
			require.Eventually(t, func() bool {
				role, err := client(t, replica.Addr).Do(t.Context(), "ROLE").Slice()
				return err == nil && role[0] == "master"
			}, eventually, 20*ms)
			promoted, had := time.Now(), left.Load()
			require.Eventually(t, func() bool { return left.Load() > had+50 }, eventually, ms)
			t.Logf("50 calls left %v after the replica was master", time.Since(promoted))
			stop()
			all.Wait()
			// One state follows the other: a burst, and a run that is in hand.
			assertShared(t, watched.Take(), r, 2+5)
		})
	}
}
