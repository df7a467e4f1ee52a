package redis_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/scheduler/redis/internal/redisserver"
	"github.com/sluice-go/sluice/shaper"
)

const ms = time.Millisecond

const (
	// patience is the timeout of a limit that shall take no busy machine for a server that
	// is away.
	patience = 10 * time.Second
	// brief is one for tests that wait until what a request was told has expired, three
	// timeouts later.
	brief = 2 * time.Second
	// eventually is how long a test waits for what comes in a moment: so long that only
	// what never comes is missed.
	eventually = time.Minute
)

// realServer starts a server for this test, or skips the test.
func realServer(t testing.TB, args ...string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(args...)
	if errors.Is(err, redisserver.ErrMissing) {
		t.Skip("needs a real server: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// stop has a server hang, or skips the test where that cannot be.
func stop(t testing.TB, s *redisserver.Server) {
	t.Helper()
	err := s.Stop()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// client returns one as users make it.
func client(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// onEach runs a test on miniredis and on a real server.
func onEach(t *testing.T, f func(t *testing.T, addr string)) {
	t.Run("miniredis", func(t *testing.T) { f(t, miniredis.RunT(t).Addr()) })
	t.Run("server", func(t *testing.T) { f(t, realServer(t).Addr) })
}

// newSchedule returns one that is patient, as a busy machine is slow.
func newSchedule(t testing.TB, c goredis.UniversalClient, name string, r scheduler.Rate, burst int64, opts ...redis.Option) *redis.Schedule {
	t.Helper()
	opts = append([]redis.Option{redis.WithTimeout(patience)}, opts...)
	s, err := redis.New(c, name, r, burst, redis.FailLocal(4), opts...)
	require.NoError(t, err)
	return s
}

func newShaper(t testing.TB, s redis.Shared, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	sh, err := redis.NewShaper(s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

// closedPort is an address at which no server listens.
func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// calls returns how often a command was called, as the server counts.
func calls(t testing.TB, c *goredis.Client, commands ...string) (n int64) {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, line := range strings.Split(info, "\r\n") {
		for _, command := range commands {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
				var calls int64
				for _, digit := range rest {
					if digit < '0' || digit > '9' {
						break
					}
					calls = calls*10 + int64(digit-'0')
				}
				n += calls
			}
		}
	}
	return n
}
