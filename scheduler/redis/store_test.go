package redis

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis/internal/redisserver"
)

// Each store keeps the contract. TestShapeWhateverHappens is what happens to it at its worst.
func TestStores(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) { conforms(t, storeAt(t, miniredis.RunT(t).Addr())) })
	t.Run("server", func(t *testing.T) {
		s, err := redisserver.Start()
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		conforms(t, storeAt(t, s.Addr))
	})
}

func storeAt(t *testing.T, addr string) store {
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return newServer(c)
}

// A user sends requests to a pace of one unit an hour, on a lane of its own: so nothing depends on
// how fast the test is.
type user struct {
	t     *testing.T
	store store
	key   string
	lane  string
	n     *int64
	lost  int64
	epoch string
	burst int64
}

func (u *user) request(change func(*paceRequest)) paceRequest {
	hour, err := newPace(scheduler.PerHour(1))
	require.NoError(u.t, err)
	*u.n++
	r := paceRequest{header: header{lane: u.lane, number: *u.n, lost: u.lost, keep: time.Minute}, pace: hour, burst: u.burst, epoch: u.epoch, within: -1, span: 1 << 50}
	change(&r)
	return r
}

func (u *user) send(r paceRequest) paceReply {
	got, err := u.store.pace(context.Background(), u.key, r)
	require.NoError(u.t, err)
	if !got.late {
		u.epoch = got.epoch
	}
	return got
}

func (u *user) take(units int64) paceReply {
	return u.send(u.request(func(r *paceRequest) { r.cost, r.lead = units, units }))
}

// hours returns how far ahead the rows of a reply are, in whole hours, and how long they are.
func hours(got paceReply) (all [][2]int64) {
	for _, r := range got.rows {
		all = append(all, [2]int64{(time.Duration(r.first.us-got.now)*time.Microsecond + time.Minute).Milliseconds() / time.Hour.Milliseconds(), r.units})
	}
	return all
}

// conforms is what the contract of a store asks of it.
func conforms(t *testing.T, s store) {
	var numbers int64
	users := func(name string, burst int64, lanes ...string) (all []*user) {
		for _, lane := range lanes {
			all = append(all, &user{t: t, store: s, key: "sluice:{" + name + "}:pace", lane: lane, n: &numbers, burst: burst})
		}
		return all
	}
	back := func(u *user, rows ...row) paceRequest {
		return u.request(func(r *paceRequest) {
			for _, one := range rows {
				r.returned = append(r.returned, tagged[row]{r.number, one})
			}
		})
	}
	t.Run("in order", func(t *testing.T) {
		u := users("order", 1, "a.1", "b.1", "b.2")
		assert.Equal(t, [][2]int64{{0, 2}}, hours(u[0].take(2)))
		assert.Equal(t, [][2]int64{{2, 1}}, hours(u[1].take(1)))
		got := u[2].take(1)
		assert.Equal(t, [][2]int64{{3, 1}}, hours(got))
		assert.EqualValues(t, 2, got.living, "lanes of one process")
	})
	t.Run("what comes back goes first, once", func(t *testing.T) {
		u := users("back", 1, "a.1", "b.1")
		first := u[0].take(1)
		u[1].take(3)
		mid := u[0].take(2)
		u[1].take(1)
		again := back(u[0], mid.rows...)
		u[0].send(again)
		assert.Equal(t, [][2]int64{{4, 1}}, hours(u[1].take(1)))
		assert.Equal(t, u[0].send(again).epoch, first.epoch, "arrives twice")
		assert.Equal(t, [][2]int64{{5, 1}}, hours(u[1].take(1)))
		assert.Equal(t, [][2]int64{{7, 1}}, hours(u[1].take(1)))
		u[0].epoch = "another"
		u[0].send(back(u[0], mid.rows...))
		assert.Equal(t, [][2]int64{{8, 1}}, hours(u[1].take(1)), "of another epoch")
	})
	t.Run("too late reserves nothing", func(t *testing.T) {
		u := users("late", 1, "a.1")[0]
		u.take(5)
		got := u.send(u.request(func(r *paceRequest) { r.cost, r.lead, r.within, r.rest = 1, 1, 4*time.Hour, 3 }))
		assert.Empty(t, got.rows)
		assert.InDelta(t, (5 * time.Hour).Microseconds(), got.next.us-got.now, float64(time.Minute.Microseconds()))
		assert.Equal(t, [][2]int64{{5, 1}}, hours(u.take(1)))
	})
	t.Run("units of a call are close", func(t *testing.T) {
		u := users("close", 3, "a.1", "b.1")
		u[0].take(1)
		u[1].take(4)
		one := u[0].take(1)
		u[1].take(4)
		u[0].send(back(u[0], one.rows...))
		assert.Equal(t, [][2]int64{{10, 2}}, hours(u[0].take(2)), "not the free one, which is far")
		assert.Equal(t, [][2]int64{{5, 1}}, hours(u[0].take(1)))
	})
	t.Run("no answer", func(t *testing.T) {
		u := users("lost", 1, "a.1", "b.1")
		u[0].take(1)
		lost := u[0].request(func(r *paceRequest) { r.cost, r.lead = 2, 2 })
		u[0].send(lost)
		u[1].take(1)
		u[0].lost = lost.number
		assert.Equal(t, [][2]int64{{1, 1}}, hours(u[0].take(1)), "its slots come back")
		u[0].lost = 0
		assert.True(t, u[0].send(lost).late, "behind a later one")
		assert.Equal(t, [][2]int64{{2, 1}}, hours(u[1].take(1)))
		never := u[0].request(func(r *paceRequest) { r.charged = []tagged[int64]{{r.number, 1}} })
		u[0].lost = never.number
		got := u[0].send(u[0].request(func(r *paceRequest) { r.charged, r.cost, r.lead = never.charged, 1, 1 }))
		assert.Equal(t, [][2]int64{{5, 1}}, hours(got), "it has not arrived, so it is charged now")
	})
	t.Run("twice", func(t *testing.T) {
		u := users("twice", 1, "a.1")[0]
		r := u.request(func(r *paceRequest) { r.cost, r.lead = 2, 2 })
		assert.Equal(t, u.send(r).rows, u.send(r).rows)
		assert.Equal(t, [][2]int64{{2, 1}}, hours(u.take(1)))
		old := u.request(func(r *paceRequest) { r.cost, r.lead, r.expires = 1, 1, time.Now().Add(-time.Hour).UnixMicro() })
		assert.True(t, u.send(old).late, "expired")
		assert.Equal(t, [][2]int64{{3, 1}}, hours(u.take(1)))
	})
	t.Run("hold", func(t *testing.T) {
		u := users("hold", 1, "a.1", "b.1")
		early := u[0].take(1)
		u[1].take(1)
		u[0].send(u[0].request(func(r *paceRequest) { r.hold = 5 * time.Hour }))
		u[0].send(back(u[0], early.rows...))
		got := u[1].take(1)
		assert.Equal(t, [][2]int64{{5, 1}}, hours(got))
		assert.InDelta(t, (5 * time.Hour).Microseconds(), got.hold-got.now, float64(time.Minute.Microseconds()))
	})
	for _, log := range []bool{false, true} {
		t.Run(map[bool]string{false: "fixed window", true: "sliding log"}[log], func(t *testing.T) {
			conformsAsCount(t, s, log, &numbers)
		})
	}
}

func conformsAsCount(t *testing.T, s store, log bool, numbers *int64) {
	key := map[bool]string{false: "sluice:{count}:window", true: "sluice:{count}:log"}[log]
	const year = 365 * 24 * time.Hour
	request := func(lane string, units, least int64) countRequest {
		*numbers++
		return countRequest{header: header{lane: lane, number: *numbers, keep: time.Minute}, log: log, window: year, limit: 10, units: units, least: least}
	}
	send := func(r countRequest) countReply {
		got, err := s.count(context.Background(), key, r)
		require.NoError(t, err)
		return got
	}
	first := request("a.1", 6, 1)
	got := send(first)
	assert.EqualValues(t, 6, got.granted)
	assert.Equal(t, got.of, send(first).of, "twice")
	assert.EqualValues(t, 0, send(request("b.1", 6, 5)).granted, "fewer are of no use")
	assert.EqualValues(t, 4, send(request("b.1", 6, 1)).granted)
	r := request("a.1", 0, 0)
	r.returned = []tagged[grant]{{r.number, grant{units: 3, of: got.of}}}
	send(r)
	send(r)
	lost := request("b.1", 2, 1)
	assert.EqualValues(t, 2, send(lost).granted)
	next := request("b.1", 9, 1)
	next.lost = lost.number
	last := send(next)
	assert.EqualValues(t, 3, last.granted, "three have come back, and none was lost")
	assert.EqualValues(t, 2, last.living)
	r = request("a.1", 0, 0)
	r.charged = []tagged[int64]{{r.number, 5}}
	send(r)
	assert.Zero(t, send(request("a.1", 1, 1)).granted)
}
