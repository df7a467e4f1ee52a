package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture is well formed, has a bar for each tenant in each panel, and cuts nothing off.
func TestPicture(t *testing.T) {
	c, err := compare(&settings{noisy: 80, burst: 1, seed: 1})
	require.NoError(t, err)
	d := xml.NewDecoder(bytes.NewReader(draw(c)))
	bars := make(map[string]int)
	var height float64
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		values := make(map[string]string)
		for _, a := range e.Attr {
			values[a.Name.Local] = a.Value
		}
		number := func(name string) float64 {
			x, err := strconv.ParseFloat(values[name], 64)
			require.NoError(t, err)
			return x
		}
		switch {
		case e.Name.Local == "svg":
			height = number("height")
		case values["class"] == "legend":
			require.NoError(t, d.Skip()) // its marks are no bars
		case e.Name.Local == "rect" && values["class"] != "paper":
			bars[values["class"]]++
			require.LessOrEqual(t, number("width"), float64(barsWidth))
			require.LessOrEqual(t, number("y")+number("height"), height)
		case e.Name.Local == "text":
			require.LessOrEqual(t, number("x"), float64(pictureWidth))
			require.LessOrEqual(t, number("y"), height)
		}
	}
	assert.Equal(t, 2*len(c.tenants), bars["even"]+bars["less"]+bars["more"])
	assert.GreaterOrEqual(t, bars["even"], 39, "by weight all but the noisy one and the eager ones")
	assert.GreaterOrEqual(t, bars["less"], 39, "in one line the same tenants")
	assert.GreaterOrEqual(t, bars["more"], 2, "the noisy one in both")
}
