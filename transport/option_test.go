package transport_test

import (
	"testing"

	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// An option that makes no sense is a mistake in the program.
func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, opt := range map[string]func() transport.Option{
		"transport: maximum hold 0s: must be positive":                                func() transport.Option { return transport.WithMaxHold(0) },
		"transport: maximum delay -1ns: must be positive":                             func() transport.Option { return transport.WithMaxDelay(-1) },
		"transport: 0 in flight: must be at least 1":                                  func() transport.Option { return transport.WithMaxInFlight(0) },
		"transport: adaptive rate with a floor of 0: must be above 0 and at most 1":   func() transport.Option { return transport.WithAdaptiveRate(0) },
		"transport: adaptive rate with a floor of 1.1: must be above 0 and at most 1": func() transport.Option { return transport.WithAdaptiveRate(1.1) },
		"transport: retry with 1 attempts: must be at least 2":                        func() transport.Option { return transport.WithRetry(transport.Retry{Attempts: 1}) },
		"transport: retry with a budget of -0.1: must be above 0 and at most 1":       func() transport.Option { return transport.WithRetry(transport.Retry{Budget: -0.1}) },
		"transport: retry with a budget of 1.5: must be above 0 and at most 1":        func() transport.Option { return transport.WithRetry(transport.Retry{Budget: 1.5}) },
	} {
		require.PanicsWithValue(t, want, func() { transport.New(nil, ready, opt()) })
	}
	require.Panics(t, func() { transport.New(nil, ready, nil) })
	require.PanicsWithValue(t, "transport: NewKeyed called with a nil KeyedWaiter", func() { transport.NewKeyed(nil, nil, nil) })
}
