package main

import (
	"context"
	"fmt"
)

// standInLine uses up the burst of a limiter that stands still and has n calls wait at
// it; left is called when one leaves. It returns once all of them are blocked.
func standInLine(l limiter, n int, left func()) (*crowd, error) {
	if err := l.wait(context.Background()); err != nil {
		return nil, err
	}
	before := count().blocked
	c := gather(n, func(ctx context.Context) {
		if l.wait(ctx) == nil {
			left()
		}
	})
	if !awaitBlocked(before, n) {
		return nil, fmt.Errorf("%d of %d calls wait", count().blocked-before, n)
	}
	return c, nil
}
