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

// result is what one run of the program says.
type result struct {
	status         int
	stdout, stderr string
}

func runWith(stdin string, args ...string) result {
	var stdout, stderr strings.Builder
	status := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// The picture in the README is what the program draws.
func TestPictureOfTheREADME(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "compare.svg")
	require.Equal(t, 0, runWith("", "-svg", drawn).status)
	got, err := os.ReadFile(drawn)
	require.NoError(t, err)
	const file = "../../docs/compare.svg"
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "go test ./examples/compare -update draws it anew")
}

func TestGolden(t *testing.T) {
	for _, pattern := range []string{"burst", "boundary"} {
		t.Run(pattern, func(t *testing.T) {
			got := runWith("", "-pattern", pattern)
			require.Equal(t, 0, got.status)
			require.Empty(t, got.stderr)
			file := filepath.Join("testdata", pattern+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.stdout), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.stdout)
		})
	}
}

func TestSeed(t *testing.T) {
	one := runWith("", "-pattern", "costs", "-seed", "1")
	assert.Equal(t, one, runWith("", "-pattern", "costs"))
	assert.NotEqual(t, one.stdout, runWith("", "-pattern", "costs", "-seed", "2").stdout)
}

func TestBadFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-limit", "1"}, "-limit 1: must be from 2 to 10000"},
		{[]string{"-limit", "10001"}, "-limit 10001: must be from 2 to 10000"},
		{[]string{"-limit", "ten"}, `"ten"`},
		{[]string{"-window", "0s"}, "-window 0s: must be from 1ms to 8784h0m0s"},
		{[]string{"-window", "8785h"}, "-window 8785h0m0s: must be from"},
		{[]string{"-burst", "0"}, "-burst 0: must be from 1 to 10000"},
		{[]string{"-patience", "-1s"}, `"-1s" for flag -patience: must not be negative`},
		{[]string{"-patience", "long"}, `"long"`},
		{[]string{"-pattern", "storm"}, `-pattern "storm": must be one of burst, trace, boundary, overload, costs`},
		{[]string{"-pattern", "burst", "-in", "x.csv"}, "-pattern burst and -in x.csv: only one of them can come"},
		{[]string{"-in", "no/such.csv"}, "no/such.csv"},
		{[]string{"-in", "."}, "."},
		{[]string{"-svg", "no/such.svg"}, "no/such.svg"},
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"burst"}, `unexpected argument "burst"`},
	} {
		got := runWith("", test.args...)
		assert.Equal(t, 2, got.status, "%q", test.args)
		assert.Contains(t, got.stderr, test.want, "%q", test.args)
	}
}

func TestHelp(t *testing.T) {
	got := runWith("", "-h")
	assert.Equal(t, 0, got.status)
	assert.Contains(t, got.stderr, "-patience duration")
	assert.Empty(t, got.stdout)
}

func TestIn(t *testing.T) {
	const calls = "seconds,cost\n0,3\nlater,1\n0.5\n1,0\n"
	file := filepath.Join(t.TempDir(), "calls.csv")
	require.NoError(t, os.WriteFile(file, []byte(calls), 0o644))

	fromFile, fromStdin := runWith("", "-in", file), runWith(calls, "-in", "-")
	for _, got := range []result{fromFile, fromStdin} {
		assert.Equal(t, 1, got.status)
		assert.Contains(t, got.stdout, "2 calls of 4 units", "the rest is still of use")
		assert.Equal(t, "compare: line 3: seconds \"later\": must be a number such as 0, 12 or 1.25\n"+
			"compare: line 5: cost \"0\": must be a whole number from 1 to 1000000\n", got.stderr)
	}
	assert.Contains(t, fromFile.stdout, "calls from "+file)
}

func TestNoCalls(t *testing.T) {
	got := runWith("", "-in", "-", "-svg", filepath.Join(t.TempDir(), "none.svg"))
	assert.Equal(t, 0, got.status)
	assert.Contains(t, got.stdout, "0 calls of 0 units")
	assert.Empty(t, got.stderr)
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	var stderr strings.Builder
	assert.Equal(t, 2, run(nil, nil, full{}, &stderr))
	assert.Equal(t, "compare: disk full\n", stderr.String())
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
