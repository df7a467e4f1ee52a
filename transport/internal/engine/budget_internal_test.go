package engine

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many keys there are, their budgets take no more memory than the bound allows.
func TestBudgetsAreBounded(t *testing.T) {
	b := &Budget{Share: 0.5}
	b.Deposit("never refused")
	require.Empty(t, b.keys, "a full budget is not remembered")
	for i := range 3 * maxBudgets {
		require.True(t, b.Withdraw(strconv.Itoa(i)))
	}
	require.Len(t, b.keys, maxBudgets)

	b = &Budget{Share: 0.5}
	for range maxSaved {
		require.True(t, b.Withdraw("a"))
	}
	require.False(t, b.Withdraw("a"))
	require.True(t, b.Withdraw("b"))
	b.Refund("b")
	require.Len(t, b.keys, 1, "full again")
	b.Deposit("a")
	require.False(t, b.Withdraw("a"))
	b.Deposit("a")
	require.True(t, b.Withdraw("a"))
	for range 2 * maxSaved {
		b.Deposit("a")
	}
	require.Empty(t, b.keys)
}
