package redis_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/scheduler/redis/internal/redisserver"
)

// A node is a server of a cluster.
type node struct {
	*redisserver.Server
	admin *goredis.Client
	id    string
}

// newCluster starts three masters, with a replica each.
func newCluster(t *testing.T) (nodes []node) {
	var at []string
	for range 6 {
		bus := freePort(t)
		s := realServer(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus,
			"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0")
		n := node{s, client(t, s.Addr), ""}
		n.id = n.admin.Do(t.Context(), "CLUSTER", "MYID").Val().(string)
		nodes = append(nodes, n)
		at = append(at, bus)
	}
	for i, n := range nodes[1:] {
		host, port, err := net.SplitHostPort(n.Addr)
		require.NoError(t, err)
		require.NoError(t, nodes[0].admin.Do(t.Context(), "CLUSTER", "MEET", host, port, at[i+1]).Err())
	}
	for i, slots := range [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}} {
		require.NoError(t, nodes[i].admin.ClusterAddSlotsRange(t.Context(), slots[0], slots[1]).Err())
	}
	for i, n := range nodes[3:] {
		require.Eventually(t, func() bool { return n.admin.ClusterReplicate(t.Context(), nodes[i].id).Err() == nil }, eventually, 50*ms)
	}
	for _, n := range nodes {
		require.Eventually(t, func() bool {
			info := n.admin.ClusterInfo(t.Context()).Val()
			all := n.admin.ClusterNodes(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Count(all, " slave ")+strings.Count(all, "myself,slave") >= 3
		}, eventually, 50*ms)
	}
	for _, n := range nodes[3:] {
		require.Eventually(t, func() bool {
			return strings.Contains(n.admin.Info(t.Context(), "replication").Val(), "master_link_status:up")
		}, eventually, 50*ms)
	}
	return nodes
}

func freePort(t *testing.T) string {
	_, port, err := net.SplitHostPort(closedPort(t))
	require.NoError(t, err)
	return port
}

// shareCluster has a process send all that it can over a cluster, and counts what left in slots.
func shareCluster(t *testing.T, nodes []node, opts ...redis.Option) (sched *redis.Schedule, left *atomic.Int64) {
	var addrs []string
	for _, n := range nodes[:3] {
		addrs = append(addrs, n.Addr)
	}
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs, ReadTimeout: 500 * ms, DialTimeout: 500 * ms})
	sched, err := redis.New(c, "shared", scheduler.PerSecond(100), 1, redis.FailClosed(), opts...)
	require.NoError(t, err)
	s := newShaper(t, sched)
	ctx, stop := context.WithCancel(t.Context())
	left = new(atomic.Int64)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				if s.Wait(ctx) == nil {
					left.Add(1)
				} else {
					time.Sleep(10 * ms)
				}
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait(); assert.NoError(t, c.Close()) })
	require.Eventually(t, func() bool { return left.Load() > 20 }, eventually, ms)
	return sched, left
}

// master returns who has the slot of a key.
func master(t *testing.T, nodes []node, key string) (at int) {
	slot := nodes[0].admin.ClusterKeySlot(t.Context(), key).Val()
	return int(min(slot/5461, 2))
}

// The master of a limit is killed: the limit is back as soon as its replica is master.
func TestClusterFailover(t *testing.T) {
	nodes := newCluster(t)
	sched, left := shareCluster(t, nodes)
	at := master(t, nodes, sched.Keys()[0])
	require.NoError(t, nodes[at].Kill())
	require.Eventually(t, func() bool {
		return strings.Contains(nodes[3+at].admin.Info(t.Context(), "replication").Val(), "role:master")
	}, eventually, 5*ms)
	promoted := time.Now()
	had := left.Load()
	require.Eventually(t, func() bool { return left.Load() > had+5 }, eventually, 5*ms)
	t.Logf("back %v after its replica was master", time.Since(promoted))
	assert.Less(t, time.Since(promoted), 5*time.Second, "the client would look by itself after a minute")
}

// The slot of a limit moves to another master, and nothing is away meanwhile.
func TestClusterMovesSlot(t *testing.T) {
	nodes := newCluster(t)
	var away atomic.Int64
	sched, left := shareCluster(t, nodes, redis.WithTimeout(time.Second), redis.WithOnChange(func(s redis.State) {
		away.Add(1)
		t.Log(s.Err)
	}))
	key := sched.Keys()[0]
	slot := nodes[0].admin.ClusterKeySlot(t.Context(), key).Val()
	from := nodes[master(t, nodes, key)]
	to := nodes[(master(t, nodes, key)+1)%3]
	do := func(n node, args ...any) { require.NoError(t, n.admin.Do(t.Context(), args...).Err()) }
	flows := func() {
		had := left.Load()
		require.Eventually(t, func() bool { return left.Load() > had+20 }, eventually, ms)
	}
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	flows()
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(t, err)
	do(from, "MIGRATE", host, port, key, 0, 5000)
	flows()
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
	flows()
	assert.Zero(t, away.Load())
}
