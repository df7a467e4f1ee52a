package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// An output is what one run of the program says.
type output struct {
	status         int
	stdout, stderr string
}

func runWith(args ...string) output {
	var stdout, stderr strings.Builder
	status := run(args, &stdout, &stderr)
	return output{status, stdout.String(), stderr.String()}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(want) == got, "%s is another: go test ./examples/tenants -update writes it anew\n%s", file, got)
}

// The table, and the picture in docs/next.md, are what the program prints and draws.
func TestGolden(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "tenants.svg")
	got := runWith("-svg", drawn)
	require.Equal(t, 0, got.status)
	require.Empty(t, got.stderr)
	golden(t, filepath.Join("testdata", "tenants.txt"), got.stdout)
	picture, err := os.ReadFile(drawn)
	require.NoError(t, err)
	golden(t, "../../docs/tenants.svg", string(picture))
}

func TestBadFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-noisy", "-1"}, "-noisy -1: must be 0, or from 0.1 to 10000"},
		{[]string{"-noisy", "0.01"}, "-noisy 0.01: must be"},
		{[]string{"-noisy", "10001"}, "-noisy 10001: must be"},
		{[]string{"-noisy", "NaN"}, "-noisy NaN: must be"},
		{[]string{"-noisy", "very"}, `"very"`},
		{[]string{"-burst", "0"}, "-burst 0: must be from 1 to 100"},
		{[]string{"-burst", "101"}, "-burst 101: must be"},
		{[]string{"-seed", "-1"}, `"-1"`},
		{[]string{"-svg", "no/such.svg"}, "no/such.svg"},
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"gold"}, `unexpected argument "gold"`},
	} {
		got := runWith(test.args...)
		assert.Equal(t, 2, got.status, "%q", test.args)
		assert.Contains(t, got.stderr, test.want, "%q", test.args)
	}
}

func TestHelp(t *testing.T) {
	got := runWith("-h")
	assert.Equal(t, 0, got.status)
	assert.Contains(t, got.stderr, "-svg file")
	assert.Empty(t, got.stdout)
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	var stderr strings.Builder
	assert.Equal(t, 2, run(nil, full{}, &stderr))
	assert.Equal(t, "tenants: disk full\n", stderr.String())
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
