package main

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// An svg is a picture that is being written.
type svg struct {
	bytes.Buffer
}

// A node is an element with its attributes in pairs of a name and a value, which is a
// string or a number.
func (s *svg) node(name string, attributes ...any) {
	s.tag(name, attributes)
	s.WriteString("/>\n")
}

// open begins an element that has others inside, and returns what ends it.
func (s *svg) open(name string, attributes ...any) (end func()) {
	s.tag(name, attributes)
	s.WriteString(">\n")
	return func() { s.WriteString("</" + name + ">\n") }
}

// text writes words at a place.
func (s *svg) text(class string, x, y float64, words string) {
	s.tag("text", []any{"class", class, "x", x, "y", y})
	s.WriteByte('>')
	s.escape(words)
	s.WriteString("</text>\n")
}

func (s *svg) rect(class string, x, y, width, height float64) {
	s.node("rect", "class", class, "x", x, "y", y, "width", width, "height", height)
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	s.node("line", "class", class, "x1", x1, "y1", y1, "x2", x2, "y2", y2)
}

// crossed draws a box with a cross in it.
func (s *svg) crossed(class string, x, y, width, height float64) {
	n := number
	s.node("path", "class", class, "d", strings.Join([]string{
		"M" + n(x), n(y) + "h" + n(width) + "v" + n(height) + "h" + n(-width) + "z" + "l" + n(width), n(height) +
			"M" + n(x), n(y+height) + "l" + n(width), n(-height),
	}, ","))
}

func (s *svg) tag(name string, attributes []any) {
	s.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		s.WriteString(" " + attributes[i].(string) + `="`)
		switch value := attributes[i+1].(type) {
		case string:
			s.escape(value)
		case float64:
			s.WriteString(number(value))
		}
		s.WriteByte('"')
	}
}

// escape also replaces what XML cannot hold at all, as a file's name may have it.
func (s *svg) escape(words string) {
	_ = xml.EscapeText(s, []byte(words)) // a Buffer takes everything
}

// number writes a length to a hundredth of a pixel.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
