package sluice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every piece of Go in the README stands, line by line, in an example that is
// compiled and run, and so does what the program that begins it prints.
func TestREADMEIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*/example_test.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, name := range append(files, "examples/hello/main.go") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		examples.WriteString(unindented(string(text)))
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	assert.GreaterOrEqual(t, len(blocks), 5)
	for _, block := range blocks {
		code, _, ok := strings.Cut(block, "```")
		require.True(t, ok, "a block of code that does not end")
		assert.Contains(t, examples.String(), unindented(code))
	}

	output, err := os.ReadFile("examples/hello/main_test.go")
	require.NoError(t, err)
	_, printed, ok := strings.Cut(string(readme), "```\n\nIt prints")
	require.True(t, ok)
	printed = strings.Split(printed, "```")[1]
	assert.Contains(t, unindented(string(output)), "// Output:"+strings.ReplaceAll(strings.TrimRight(printed, "\n"), "\n", "\n// "))
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
