//go:build !race

package redis_test

const raced = false
