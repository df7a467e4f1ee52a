// Package svg writes pictures.
package svg

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// A Picture is one that is being written.
type Picture struct {
	bytes.Buffer
}

// Node writes an element with its attributes in pairs of a name and a value, which is a
// string or a number.
func (p *Picture) Node(name string, attributes ...any) {
	p.tag(name, attributes)
	p.WriteString("/>\n")
}

// Open begins an element that has others inside, and returns what ends it.
func (p *Picture) Open(name string, attributes ...any) (end func()) {
	p.tag(name, attributes)
	p.WriteString(">\n")
	return func() { p.WriteString("</" + name + ">\n") }
}

// Text writes words at a place.
func (p *Picture) Text(class string, x, y float64, words string) {
	p.tag("text", []any{"class", class, "x", x, "y", y})
	p.WriteByte('>')
	p.Escape(words)
	p.WriteString("</text>\n")
}

func (p *Picture) Rect(class string, x, y, width, height float64) {
	p.Node("rect", "class", class, "x", x, "y", y, "width", width, "height", height)
}

func (p *Picture) Line(class string, x1, y1, x2, y2 float64) {
	p.Node("line", "class", class, "x1", x1, "y1", y1, "x2", x2, "y2", y2)
}

// Crossed draws a box with a cross in it.
func (p *Picture) Crossed(class string, x, y, width, height float64) {
	n := Number
	p.Node("path", "class", class, "d", strings.Join([]string{
		"M" + n(x), n(y) + "h" + n(width) + "v" + n(height) + "h" + n(-width) + "z" + "l" + n(width), n(height) +
			"M" + n(x), n(y+height) + "l" + n(width), n(-height),
	}, ","))
}

func (p *Picture) tag(name string, attributes []any) {
	p.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		p.WriteString(" " + attributes[i].(string) + `="`)
		switch value := attributes[i+1].(type) {
		case string:
			p.Escape(value)
		case float64:
			p.WriteString(Number(value))
		}
		p.WriteByte('"')
	}
}

// Escape writes words, and also replaces what XML cannot hold at all, as a file's name may have it.
func (p *Picture) Escape(words string) {
	_ = xml.EscapeText(p, []byte(words)) // a Buffer takes everything
}

// Number writes a length to a hundredth of a pixel.
func Number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
