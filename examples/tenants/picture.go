package main

import (
	"fmt"

	"github.com/sluice-go/sluice/examples/internal/svg"
)

// The picture in pixels: tenants on the left, and a panel of bars for each trial.
const (
	pictureWidth = 1280
	panelLeft    = 250
	panelWidth   = 515 // with the numbers beside the bars
	barsWidth    = 330
	top          = 112
	rowHeight    = 14
	planGap      = 6

	fullBar = 200. // percent of the ideal that are as wide as the bars may be
	nearly  = 3.   // percent that make no difference
)

const style = `text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #334155 }
.title { font-size: 17px; font-weight: 600; fill: #0f172a }
.about { font-size: 12px }
.name { font-size: 13px; font-weight: 600; fill: #0f172a }
.number { text-anchor: end }
.tick { fill: #64748b; text-anchor: middle }
.paper { fill: #ffffff }
.even { fill: #2563eb }
.less { fill: #f59e0b }
.more { fill: #b91c1c }
.ideal { stroke: #0f172a }
.rule { stroke: #e2e8f0 }
`

// A picture draws one comparison.
type picture struct {
	svg.Picture
	*comparison
	rows []float64 // where those of the tenants are
}

// draw returns the picture as an SVG file.
func draw(c *comparison) []byte {
	p := &picture{comparison: c}
	bottom := p.place()
	height := bottom + 30
	end := p.Open("svg", "xmlns", "http://www.w3.org/2000/svg",
		"viewBox", fmt.Sprintf("0 0 %d %s", pictureWidth, svg.Number(height)),
		"width", float64(pictureWidth), "height", height)
	endStyle := p.Open("style")
	p.WriteString(style) // it has nothing to escape
	endStyle()
	p.Rect("paper", 0, 0, pictureWidth, height)
	p.header()
	p.names()
	for i := range c.trials {
		p.panel(&c.trials[i], panelLeft+float64(i*panelWidth), bottom)
	}
	end()
	return p.Bytes()
}

// place finds a row for each tenant. Plans are a little apart.
func (p *picture) place() (bottom float64) {
	y := float64(top)
	for i, t := range p.tenants {
		if i > 0 && t.plan != p.tenants[i-1].plan {
			y += planGap
		}
		p.rows = append(p.rows, y)
		y += rowHeight
	}
	return y + planGap
}

// header says what this is and explains the bars.
func (p *picture) header() {
	p.Text("title", 16, 28, fmt.Sprintf("%d tenants share %d calls a second for %.0f s, by weight and in one line", len(p.tenants), perSecond, length.Seconds()))
	p.Text("about", 16, 48, fmt.Sprintf("what left of each tenant's calls, against what an ideal sharing of a fluid would let leave; %d calls may wait", room))
	end := p.Open("g", "class", "legend")
	defer end()
	x := 16.
	for _, mark := range []struct{ class, words string }{
		{"even", "the ideal share"}, {"less", "less"}, {"more", fmt.Sprintf("more (cut at %.0f%%)", fullBar)},
	} {
		p.Rect(mark.class, x, 58, 9, 9)
		p.Text("", x+14, 67, mark.words)
		x += 36 + 6*float64(len(mark.words))
	}
	p.Text("", x, 67, "longest: wait of a call that left")
}

// names writes who the tenants are.
func (p *picture) names() {
	const weight, limit, ideal = 125, 175, 235
	p.Text("number", weight, top-8, "weight")
	p.Text("number", limit, top-8, "limit")
	p.Text("number", ideal, top-8, "ideal")
	for i, t := range p.tenants {
		y := p.rows[i] + 11
		p.Text("", 16, y, t.name)
		p.Text("number", weight, y, fmt.Sprint(t.weight))
		p.Text("number", limit, y, fmt.Sprintf("%d/s", t.limit))
		p.Text("number", ideal, y, fmt.Sprintf("%.1f", p.ideal[i]))
	}
}

// panel draws what the tenants got in one trial.
func (p *picture) panel(t *trial, left, bottom float64) {
	const shares, longest, refused = barsWidth + 45, barsWidth + 100, barsWidth + 155
	p.Text("name", left, top-26, t.name)
	p.Text("number", left+shares, top-8, "share")
	p.Text("number", left+longest, top-8, "longest")
	p.Text("number", left+refused, top-8, "refused")
	for percent := 0.; percent <= fullBar; percent += 50 {
		x := left + percent/fullBar*barsWidth
		p.Line("rule", x, top-4, x, bottom)
		p.Text("tick", x, bottom+14, fmt.Sprintf("%.0f%%", percent))
	}
	for i, r := range t.results {
		y, share := p.rows[i], p.share(t, i)
		class := "even"
		switch {
		case share < 100-nearly:
			class = "less"
		case share > 100+nearly:
			class = "more"
		}
		p.Rect(class, left, y+2, min(share, fullBar)/fullBar*barsWidth, rowHeight-4)
		p.Text("number", left+shares, y+11, fmt.Sprintf("%.0f%%", share))
		p.Text("number", left+longest, y+11, fmt.Sprintf("%.2f s", r.longest.Seconds()))
		p.Text("number", left+refused, y+11, fmt.Sprint(r.refused))
	}
	x := left + 100/fullBar*barsWidth
	p.Line("ideal", x, top-4, x, bottom)
}
