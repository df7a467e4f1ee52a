package main

import (
	"fmt"

	"github.com/sluice-go/sluice/examples/internal/svg"
)

// The picture in pixels: names on the left, a plot, and numbers on the right.
const (
	pictureWidth = 1280
	plotLeft     = 240
	plotWidth    = 690
	plotRight    = plotLeft + plotWidth
	plotTop      = 104

	maxSlots = 110 // wide enough to be seen
	maxWide  = 9   // a mark
	maxUnit  = 7   // high
	minUnit  = 2   // below this single units cannot be told apart
	tallest  = 56  // stack of units

	laneGap = 8
	minLane = 18 // room for words
)

const style = `
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #334155 }
.title { font-size: 17px; font-weight: 600; fill: #0f172a }
.name { font-size: 13px; font-weight: 600; fill: #0f172a }
.about { font-size: 11px; fill: #64748b }
.use { fill: #64748b; text-anchor: end }
.tick { fill: #64748b; text-anchor: middle }
.over { fill: #b91c1c; font-weight: 700 }
.paper { fill: #ffffff }
.rule { stroke: #e2e8f0 }
.base { stroke: #cbd5e1 }
.boundary { stroke: #94a3b8; stroke-dasharray: 2 3 }
.mark { stroke: #94a3b8 }
.kept { fill: #eef2f7 }
.exceeded { fill: #fecaca }
.arrival { fill: #475569; stroke: #ffffff; stroke-width: .6 }
.departure { fill: #2563eb; stroke: #ffffff; stroke-width: .6 }
.refusal { fill: #ffedd5; stroke: #ea580c; stroke-width: .8 }
`

// A picture draws one comparison.
type picture struct {
	svg.Picture
	*comparison
	axis
	wide float64 // a slot
	unit float64 // high
}

// A lane is a row of the picture. What leaves stacks up from its base line, and what
// is refused hangs down from it.
type lane struct {
	*trial    // nil for the arrivals
	outcomes  []outcome
	y, base   float64
	height    float64
	departure string // class of what leaves
}

// draw returns the picture as an SVG file.
func draw(c *comparison) []byte {
	p := &picture{comparison: c, axis: newAxis(c, maxSlots)}
	p.wide = plotWidth / float64(p.slots)
	lanes, bottom := p.lanes()
	height := bottom + 34

	end := p.Open("svg", "xmlns", "http://www.w3.org/2000/svg",
		"viewBox", fmt.Sprintf("0 0 %d %s", pictureWidth, svg.Number(height)),
		"width", float64(pictureWidth), "height", height)
	endStyle := p.Open("style")
	p.Escape(style)
	endStyle()
	p.Rect("paper", 0, 0, pictureWidth, height)
	p.header()
	// From back to front: worst windows, boundaries, and then the calls.
	for _, l := range lanes {
		p.behind(l)
	}
	p.drawTimes(bottom)
	for _, l := range lanes {
		p.words(l)
		p.stack(l)
	}
	end()
	return p.Bytes()
}

// lanes places the arrivals and all trials, and finds how high a unit may be.
func (p *picture) lanes() (lanes []lane, bottom float64) {
	lanes = []lane{{outcomes: arrived(p.calls), departure: "arrival"}}
	for i := range p.trials {
		t := &p.trials[i]
		lanes = append(lanes, lane{trial: t, outcomes: t.outcomes, departure: "departure"})
	}
	var highest int64 = 1
	for _, l := range lanes {
		left, refused := p.sums(l)
		highest = max(highest, most(left), most(refused))
	}
	p.unit = min(maxUnit, tallest/float64(highest))

	y := float64(plotTop)
	for i := range lanes {
		l := &lanes[i]
		left, refused := p.sums(*l)
		l.y = y
		l.base = y + max(minLane, float64(most(left))*p.unit)
		l.height = l.base - y + float64(most(refused))*p.unit
		y += l.height + laneGap
	}
	return lanes, y
}

// sums returns the units in each slot that leave and that are refused.
func (p *picture) sums(l lane) (left, refused []int64) {
	left, refused = make([]int64, p.slots), make([]int64, p.slots)
	for _, o := range l.outcomes {
		if o.refused {
			refused[p.slot(o.at)] += o.cost
		} else {
			left[p.slot(o.left)] += o.cost
		}
	}
	return left, refused
}

func most(sums []int64) (highest int64) {
	for _, units := range sums {
		highest = max(highest, units)
	}
	return highest
}

// stack draws a mark for each call, as high as its cost. Where they would be too thin
// to be told apart it draws one for all of a slot, which also keeps the file small.
func (p *picture) stack(l lane) {
	p.Line("base", plotLeft, l.base, plotRight, l.base)
	if p.unit < minUnit {
		left, refused := p.sums(l)
		for slot := range p.slots {
			p.left(l, slot, 0, left[slot])
			p.refused(l, slot, 0, refused[slot])
		}
		return
	}
	left, refused := make([]int64, p.slots), make([]int64, p.slots)
	for _, o := range l.outcomes {
		if o.refused {
			slot := p.slot(o.at)
			p.refused(l, slot, refused[slot], o.cost)
			refused[slot] += o.cost
		} else {
			slot := p.slot(o.left)
			p.left(l, slot, left[slot], o.cost)
			left[slot] += o.cost
		}
	}
}

// left draws units that leave, on top of those that are there.
func (p *picture) left(l lane, slot int, there, units int64) {
	if units > 0 {
		high := float64(units) * p.unit
		p.Rect(l.departure, p.x(slot), l.base-float64(there)*p.unit-high, min(p.wide, maxWide), high)
	}
}

// refused draws units that are refused, below those that are there.
func (p *picture) refused(l lane, slot int, there, units int64) {
	if units > 0 {
		const inset = .5 // for the stroke
		p.Crossed("refusal", p.x(slot)+inset, l.base+float64(there)*p.unit+inset,
			min(p.wide, maxWide)-2*inset, float64(units)*p.unit-2*inset)
	}
}

func (p *picture) x(slot int) float64 { return plotLeft + float64(slot)*p.wide }

// behind draws what is behind the calls: a rule above each schedule, and the window
// in which most of it left.
func (p *picture) behind(l lane) {
	if l.trial == nil {
		return
	}
	if l.use == meter {
		p.Line("rule", 0, l.y-laneGap/2., pictureWidth, l.y-laneGap/2.)
	}
	if l.passed == 0 {
		return
	}
	class := "kept"
	if l.worst > p.limits.limit {
		class = "exceeded"
	}
	x := p.x(p.slot(l.worstAt))
	wide := p.wide * float64(p.perWindow) / float64(p.perSlot)
	p.Rect(class, x, l.y-2, min(wide, plotRight-x), l.height+4)
}

// drawTimes draws the boundaries and, above and below the plot, the ticks.
func (p *picture) drawTimes(bottom float64) {
	for slot := range p.slots {
		if p.isBoundary(slot) {
			p.Line("boundary", p.x(slot), plotTop-6, p.x(slot), bottom)
		}
	}
	const letter = 8 // pixels, on the safe side
	need := func(label string) int { return int(float64(len(label)+1)*letter/p.wide) + 1 }
	for _, slot := range p.ticks(need) {
		x, label := p.x(slot), p.label(slot)
		p.Line("mark", x, plotTop-11, x, plotTop-6)
		p.Line("mark", x, bottom, x, bottom+5)
		p.Text("tick", x, plotTop-15, label)
		p.Text("tick", x, bottom+18, label)
	}
	p.Line("mark", plotLeft, bottom, plotRight, bottom)
}

// words names a lane on its left and writes its numbers on the right.
func (p *picture) words(l lane) {
	y := l.y + 13
	column := func(i int) float64 { return plotRight + 16 + 94*float64(i) }
	if l.trial == nil {
		p.Text("name", 16, y, "arrivals")
		p.Text("", column(0), y, fmt.Sprintf("%d calls", len(p.calls)))
		return
	}
	if l.use == meter {
		p.Text("name", 16, y, l.name)
	} else {
		p.Text("about", 16, y, l.about)
	}
	p.Text("use", plotLeft-10, y, l.use)
	p.Text("", column(0), y, fmt.Sprintf("%d passed", l.passed))
	p.Text("", column(1), y, fmt.Sprintf("%d refused", l.measure.refused))
	worst := fmt.Sprintf("worst %d", l.worst)
	if excess := l.excess(p.limits.limit); excess != "" {
		p.Text("over", column(2), y, worst+" ("+excess+")")
	} else {
		p.Text("", column(2), y, worst)
	}
}

// header says what this is and explains the marks.
func (p *picture) header() {
	p.Text("title", 16, 28, p.title())
	p.Text("", 16, 48, p.terms())
	end := p.Open("g", "class", "legend")
	defer end()
	const y, high, letter = 60, 9, 6.6
	x := 16.
	words := func(mark float64, words string) {
		p.Text("", x+mark+5, y+high, words)
		x += mark + 5 + letter*float64(len(words)) + 16
	}
	p.Rect("departure", x, y, high, high)
	words(high, "leaves")
	p.Crossed("refusal", x, y, high, high)
	words(high, "refused")
	p.Line("boundary", x+4, y-4, x+4, y+high+4)
	words(high, "a window begins")
	worst := "the worst " + plain(p.limits.window)
	p.Rect("kept", x, y-3, 20, 15)
	words(20, worst)
	p.Rect("exceeded", x, y-3, 20, 15)
	words(20, fmt.Sprintf("%s, above the limit of %d", worst, p.limits.limit))
	words(0, fmt.Sprintf("(as high as the cost, in columns of %s)", plain(p.slotLength())))
}
