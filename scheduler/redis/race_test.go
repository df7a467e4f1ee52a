//go:build race

package redis_test

// raced: the race detector makes the scripts of miniredis ten times slower.
const raced = true
