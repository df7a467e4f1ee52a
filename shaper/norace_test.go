//go:build !race

package shaper_test

const raced = false
