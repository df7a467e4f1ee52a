package sluice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every piece of Go in the README and in the pages that say so here stands, line by line, in
// an example that is compiled and run.
func TestREADMEIsCompiled(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*/example*_test.go", "*/*/example*_test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	var examples strings.Builder
	for _, name := range append(files, "examples/hello/main.go") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		examples.WriteString(unindented(string(text)))
	}
	for page, least := range map[string]int{"README.md": 5, "docs/next.md": 4} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		blocks := strings.Split(string(text), "```go\n")[1:]
		assert.GreaterOrEqual(t, len(blocks), least, page)
		for _, block := range blocks {
			code, _, ok := strings.Cut(block, "```")
			require.True(t, ok, "%s: a block of code that does not end", page)
			assert.True(t, strings.Contains(examples.String(), unindented(code)), "%s: in no example that is run:\n%s", page, code)
		}
	}
}

// What the program that begins the README prints stands in it.
func TestREADMEPrints(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
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
