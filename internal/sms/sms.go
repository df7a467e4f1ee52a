// Package sms counts the parts in which a text message is sent, which is what
// partners limit and charge for.
package sms

import "strings"

// The user data of one part is 140 octets: 160 septets or 70 UTF-16 code units.
// The parts of a longer message each give 6 octets to the header that joins them
// again.
const (
	gsmSingle  = 160 // septets
	gsmPart    = 153
	ucs2Single = 70 // UTF-16 code units
	ucs2Part   = 67
)

// The default alphabet of 3GPP TS 23.038 (GSM 03.38), apart from the letters A to
// Z in both cases and the digits. Note Ç without its small form, and no backtick.
const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà"

// The extension table. Each of its characters is sent as an escape pair.
const extension = "\f^{}\\[~]|€"

// Segments returns the number of parts in which text is sent, at least 1.
//
// A text that the GSM alphabet can express has one part up to 160 septets and
// parts of at most 153 beyond; a character of the extension table takes two
// septets. Any other text is sent as UCS-2: one part up to 70 UTF-16 code units
// and parts of at most 67 beyond. No part ends within an escape or surrogate pair.
// A byte that is not valid UTF-8 counts as U+FFFD. National language tables are
// not used.
func Segments(text string) int {
	if width, ok := gsmWidth(text); ok {
		if width <= gsmSingle {
			return 1
		}
		return parts(text, septets, gsmPart)
	}
	if ucs2Width(text) <= ucs2Single {
		return 1
	}
	return parts(text, codeUnits, ucs2Part)
}

// parts fills one part after the other. A pair that does not fit into the rest of
// a part begins the next, so the count can exceed the quotient of the widths.
func parts(text string, width func(rune) int, capacity int) int {
	n, filled := 1, 0
	for _, r := range text {
		w := width(r)
		if filled+w > capacity {
			n++
			filled = 0
		}
		filled += w
	}
	return n
}

// gsmWidth returns the length of text in septets; ok is false if the GSM alphabet
// cannot express it.
func gsmWidth(text string) (width int, ok bool) {
	for _, r := range text {
		w := septets(r)
		if w == 0 {
			return 0, false
		}
		width += w
	}
	return width, true
}

func ucs2Width(text string) int {
	width := 0
	for _, r := range text {
		width += codeUnits(r)
	}
	return width
}

// septets returns what r takes in the GSM alphabet, or 0 if it is not part of it.
func septets(r rune) int {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return 1
	case strings.ContainsRune(basic, r):
		return 1
	case strings.ContainsRune(extension, r):
		return 2
	}
	return 0
}

// codeUnits returns what r takes in UTF-16.
func codeUnits(r rune) int {
	if r >= 0x10000 { // beyond the basic plane: a surrogate pair
		return 2
	}
	return 1
}
