//go:build race

package shaper_test

// raced: the race detector makes a test ten times slower.
const raced = true
