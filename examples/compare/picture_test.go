package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// elements reads a picture to its end, and returns its elements and its words. Those of
// the legend are not among them.
func elements(t *testing.T, picture []byte) (all []xml.StartElement, words string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all, words
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if attribute(token, "class") == "legend" {
				require.NoError(t, d.Skip()) // it has marks, but they are no calls
				continue
			}
			all = append(all, token.Copy())
		case xml.CharData:
			words += string(token)
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func classes(all []xml.StartElement) map[string]int {
	counts := make(map[string]int)
	for _, e := range all {
		counts[attribute(e, "class")]++
	}
	return counts
}

func TestOneMarkPerCall(t *testing.T) {
	for _, p := range patterns {
		c := simulate(t, settings{limits: stated, pattern: p.name, patience: stated.window}, p.calls(stated, 1))
		all, _ := elements(t, draw(c))
		var passed, refused int
		for _, tr := range c.trials {
			passed += tr.passed
			refused += tr.refused
		}
		counts := classes(all)
		assert.Equal(t, len(c.calls), counts["arrival"], p.name)
		assert.Equal(t, passed, counts["departure"], p.name)
		assert.Equal(t, refused, counts["refusal"], p.name)

		exceeded := 0
		for _, tr := range c.trials {
			if tr.worst > stated.limit {
				exceeded++
			}
		}
		assert.Equal(t, exceeded, counts["exceeded"], p.name)
		assert.Equal(t, exceeded, counts["over"], p.name)
		assert.Equal(t, len(c.trials)-exceeded, counts["kept"], p.name)
	}
}

// Everything is inside of the picture, and what has a time inside of the plot.
func TestNothingIsCutOff(t *testing.T) {
	for _, p := range patterns {
		for _, l := range []limits{stated, {limit: 80, window: minWindow, burst: 1}, {limit: 2, window: maxWindow, burst: 500}} {
			all, _ := elements(t, draw(simulate(t, settings{limits: l, pattern: p.name}, p.calls(l, 1))))
			require.Equal(t, "svg", all[0].Name.Local)
			height := attribute(all[0], "height")
			require.Equal(t, "0 0 1280 "+height, attribute(all[0], "viewBox"))
			bottom := float(t, height)
			for _, e := range all {
				if e.Name.Local != "rect" || attribute(e, "class") == "paper" {
					continue
				}
				x, y := float(t, attribute(e, "x")), float(t, attribute(e, "y"))
				require.GreaterOrEqual(t, x, 0.)
				require.GreaterOrEqual(t, y, 0.)
				require.LessOrEqual(t, x+float(t, attribute(e, "width")), plotRight+.1, "%+v", e)
				require.LessOrEqual(t, y+float(t, attribute(e, "height")), bottom, "%+v", e)
			}
		}
	}
}

// What hangs down from one lane ends above what stacks up in the next one.
func TestLanesDoNotOverlap(t *testing.T) {
	for _, p := range patterns {
		all, _ := elements(t, draw(simulate(t, settings{limits: stated, pattern: p.name, patience: stated.window}, p.calls(stated, 1))))
		var above, lowest float64 // ends of the lane above and of this one
		for _, e := range all {
			var x, y, width, height float64
			switch attribute(e, "class") {
			case "base":
				above, lowest = lowest, float(t, attribute(e, "y1"))
				continue
			case "arrival", "departure":
				y, height = float(t, attribute(e, "y")), float(t, attribute(e, "height"))
			case "refusal":
				_, err := fmt.Sscanf(attribute(e, "d"), "M%f,%fh%fv%f", &x, &y, &width, &height)
				require.NoError(t, err)
			default:
				continue
			}
			require.Greater(t, y, above, p.name)
			lowest = max(lowest, y+height)
		}
	}
}

func float(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return x
}

// Where single calls cannot be told apart there is a mark for all of them in a column,
// so a picture of many calls is no big file.
func TestManyCallsAreOneMark(t *testing.T) {
	l := limits{limit: 1000, window: stated.window, burst: 1000}
	picture := draw(simulate(t, settings{limits: l, pattern: "overload"}, overload(l, 0)))
	all, _ := elements(t, picture)
	assert.LessOrEqual(t, classes(all)["arrival"], maxSlots)
	assert.Less(t, len(picture), 1<<20)
}

func TestPictureFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "boundary.svg")
	require.Equal(t, result{stdout: runWith("").stdout}, runWith("", "-svg", file))
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	_, words := elements(t, picture)
	for _, want := range []string{"worst 20 (2.0x)", "sliding counter", "10 in any 5s", "20 passed", "the limit is 10 in 5s"} {
		assert.Contains(t, words, want)
	}
}

// A file's name may have anything in it.
func TestWordsAreEscaped(t *testing.T) {
	for name, want := range map[string]string{
		`<&>"'.csv`:      `<&>"'.csv`,
		"</text>.csv":    "</text>.csv",
		"\x00\xff\n.csv": "\uFFFD\uFFFD\n.csv",
	} {
		_, words := elements(t, draw(simulate(t, settings{limits: stated, in: name}, nil)))
		assert.Contains(t, words, "calls from "+want)
	}
}
