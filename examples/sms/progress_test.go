package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConsoleWithoutTerminal(t *testing.T) {
	var b strings.Builder
	c := newConsole(&b, &b, 100)
	c.show(10, "1 sent")
	c.say("line %d: %s", 3, "refused")
	c.show(20, "2 sent")
	c.end()
	assert.Equal(t, "line 3: refused\n", b.String())
}

func TestConsoleWithTerminal(t *testing.T) {
	const clear = "\x1b[2K\r"
	for _, size := range []int64{-1, 0, 100} {
		var b strings.Builder
		c := newConsole(&b, &b, size)
		c.bar = newBar(&b, size)
		c.show(size/2, "1 sent")
		c.say("line 3: refused")
		c.show(size, "2 sent")
		c.end()
		out := b.String()
		assert.Contains(t, out, "1 sent")
		assert.Contains(t, out, clear+"line 3: refused\n", "a message has its line for itself")
		assert.True(t, strings.HasSuffix(out, clear), "nothing stays: %q", out)

		c.show(size, "3 sent")
		c.say("done")
		assert.True(t, strings.HasSuffix(b.String(), clear+"done\n"))
	}
}
