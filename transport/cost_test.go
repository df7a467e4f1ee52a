package transport_test

import (
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

func segments(n int64) transport.Option {
	return transport.WithCost(func(*http.Request) int64 { return n })
}

func TestCost(t *testing.T) {
	const none = int64(-1 << 62) // no cost in the context
	for name, tc := range map[string]struct {
		opts    []transport.Option
		context int64
		want    int
	}{
		"default":                    {nil, none, 1},
		"WithCost":                   {[]transport.Option{segments(3)}, none, 3},
		"context":                    {nil, 50, 50},
		"context overrides WithCost": {[]transport.Option{segments(3)}, 2, 2},
		"back to 1":                  {[]transport.Option{segments(3)}, 1, 1},
		"nil function":               {[]transport.Option{transport.WithCost(nil)}, none, 1},
		"last option stands":         {[]transport.Option{segments(3), segments(4)}, none, 4},
	} {
		t.Run(name, func(t *testing.T) {
			line, p := &costLine{}, newPartner()
			ctx := t.Context()
			if tc.context != none {
				ctx = transport.ContextWithCost(ctx, tc.context)
			}
			req, body, unchanged := post(t, ctx)
			_, err := transport.New(p, line, tc.opts...).RoundTrip(req)
			require.NoError(t, err)
			rest, err := io.ReadAll(body.Reader)
			require.NoError(t, err)
			require.Equal(t, `{"to":"+4670","text":"hi"}`, string(rest), "the body is not read to find the cost")
			require.Equal(t, []int{tc.want}, line.asked)
			require.Len(t, p.seen(), 1)
			unchanged()
		})
	}
}

func TestCostThatCannotBePaid(t *testing.T) {
	for name, tc := range map[string]struct {
		waiter transport.Waiter
		cost   int64
		want   string
	}{
		"zero":        {&costLine{}, 0, "0 is below 1"},
		"negative":    {&costLine{}, -7, "-7 is below 1"},
		"no WaitN":    {ready, 3, "3 asked of a Waiter without WaitN"},
		"zero, plain": {ready, 0, "0 is below 1"},
	} {
		for from, f := range map[string]func(*partner) (*transport.Transport, *http.Request, *countedBody){
			"WithCost": func(p *partner) (*transport.Transport, *http.Request, *countedBody) {
				req, body, _ := post(t, t.Context())
				if _, ok := tc.waiter.(transport.CostWaiter); !ok {
					return nil, nil, nil
				}
				return transport.New(p, tc.waiter, segments(tc.cost)), req, body
			},
			"ContextWithCost": func(p *partner) (*transport.Transport, *http.Request, *countedBody) {
				req, body, _ := post(t, transport.ContextWithCost(t.Context(), tc.cost))
				return transport.New(p, tc.waiter), req, body
			},
		} {
			t.Run(name+"/"+from, func(t *testing.T) {
				p := newPartner()
				tr, req, body := f(p)
				if tr == nil {
					return // the option panics
				}
				resp, err := tr.RoundTrip(req)
				require.Nil(t, resp)
				require.IsType(t, (*transport.Error)(nil), err)
				require.ErrorIs(t, err, transport.ErrCost)
				require.ErrorIs(t, err, transport.ErrNotSent)
				require.ErrorContains(t, err, tc.want)
				require.False(t, err.(*transport.Error).Timeout())
				require.Equal(t, 1, body.closed)
				require.Empty(t, p.seen())
				if line, ok := tc.waiter.(*costLine); ok {
					require.Empty(t, line.asked, "no slot taken")
				}
			})
		}
	}
}

// A cost of 1 is no cost: any Waiter can do it.
func TestCostOfOneNeedsNoWaitN(t *testing.T) {
	_, err := transport.New(newPartner(), ready).RoundTrip(get(t, transport.ContextWithCost(t.Context(), 1), "/x"))
	require.NoError(t, err)
}

// Cut to an int of 32 bits this cost would be 1.
func TestCostLargerThanAnInt(t *testing.T) {
	const cost = int64(1)<<32 + 1
	line, p := &costLine{}, newPartner()
	_, err := transport.New(p, line, segments(cost)).RoundTrip(get(t, t.Context(), "/x"))
	if strconv.IntSize == 64 {
		require.NoError(t, err)
		require.Equal(t, []int64{cost}, []int64{int64(line.asked[0])})
		return
	}
	require.ErrorIs(t, err, transport.ErrCost)
	require.ErrorContains(t, err, "4294967297")
	require.Empty(t, line.asked)
	require.Empty(t, p.seen())
}

// leaver lets every call leave at once, and takes a cost as it is told.
type leaver struct {
	costOnly
	left []int
}

func (l *leaver) LeaveNow(cost int) bool { l.left = append(l.left, cost); return true }

// A Waiter that can tell at once is asked about valid costs only: a negative one might be
// capacity handed back to it.
func TestCostThatCannotBePaidIsNotOffered(t *testing.T) {
	for _, cost := range []int64{0, -7} {
		for _, opts := range [][]transport.Option{nil, {segments(3)}} {
			l := &leaver{}
			_, err := transport.New(newPartner(), l, opts...).RoundTrip(get(t, transport.ContextWithCost(t.Context(), cost), "/x"))
			require.ErrorIs(t, err, transport.ErrCost)
			require.Empty(t, l.left)
		}
	}
	l := &leaver{}
	_, err := transport.New(newPartner(), l).RoundTrip(get(t, transport.ContextWithCost(t.Context(), 5), "/x"))
	require.NoError(t, err)
	require.Equal(t, []int{5}, l.left)
}
