package sms_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/internal/sms"
)

func TestSegments(t *testing.T) {
	const (
		euro  = "€" // an escape pair in the GSM alphabet
		cyr   = "Ж" // one code unit
		emoji = "😀" // a surrogate pair
	)
	rep := strings.Repeat
	for _, tt := range []struct {
		name string
		text string
		want int
	}{
		{"empty", "", 1},
		{"one letter", "a", 1},
		{"160 septets", rep("a", 160), 1},
		{"161 septets", rep("a", 161), 2},
		{"two full parts", rep("a", 306), 2},
		{"one septet more", rep("a", 307), 3},
		{"three full parts", rep("a", 459), 3},
		{"80 escape pairs", rep(euro, 80), 1},
		{"81 escape pairs", rep(euro, 81), 2},
		{"76 pairs and a lost septet to each part", rep(euro, 152), 2},
		{"306 septets that do not fit into 2 parts", rep(euro, 153), 3},
		{"pair across the border", rep("a", 152) + euro + rep("a", 152), 3},
		{"pair up to the border", rep("a", 151) + euro + rep("a", 153), 2},
		{"70 code units", rep(cyr, 70), 1},
		{"71 code units", rep(cyr, 71), 2},
		{"two full UCS-2 parts", rep(cyr, 134), 2},
		{"one code unit more", rep(cyr, 135), 3},
		{"35 surrogate pairs", rep(emoji, 35), 1},
		{"36 surrogate pairs", rep(emoji, 36), 2},
		{"33 pairs and a lost unit to each part", rep(emoji, 66), 2},
		{"134 units that do not fit into 2 parts", rep(emoji, 67), 3},
		{"surrogates across the border", rep(cyr, 66) + emoji + rep(cyr, 66), 3},
		{"surrogates up to the border", rep(cyr, 65) + emoji + rep(cyr, 67), 2},
		{"last character of the basic plane", rep("\uffff", 70), 1},
		{"first beyond the basic plane", rep("\U00010000", 36), 2},
		{"one foreign character makes all of it UCS-2", rep("a", 70) + cyr, 2},
		{"euro is one unit in UCS-2", rep(euro, 69) + cyr, 1},
		{"capital c cedilla is GSM", rep("Ç", 160), 1},
		{"small c cedilla is not", rep("ç", 71), 2},
		{"backtick is not GSM", rep("`", 71), 2},
		{"tab is not GSM", rep("\t", 71), 2},
		{"escape itself is not GSM", rep("\x1b", 71), 2},
		{"line breaks are GSM", rep("\r\n", 80), 1},
		{"form feed is an escape pair", rep("\f", 80) + "a", 2},
		{"each invalid byte is one unit", rep("\xff", 71), 2},
		{"invalid bytes that fit", rep("\xff", 70), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, sms.Segments(tt.text))
		})
	}
}

// Every character of the table must count as GSM, and no other character of the
// basic plane.
func TestAlphabet(t *testing.T) {
	for r := rune(0); r <= 0xffff; r++ {
		want := 2 // 80 code units
		if _, ok := encode7(string(r)); ok {
			want = 1 // 80 septets, or 80 pairs; one letter more tells which
			text := strings.Repeat(string(r), 80) + "a"
			code, _ := encode7(string(r))
			if got := sms.Segments(text); got != len(code) {
				t.Errorf("80 times %U and one letter: %d parts, want %d", r, got, len(code))
			}
		}
		if got := sms.Segments(strings.Repeat(string(r), 80)); got != want {
			t.Errorf("80 times %U: %d parts, want %d", r, got, want)
		}
	}
}

func FuzzSegments(f *testing.F) {
	for _, text := range []string{
		"", "hello", strings.Repeat("a", 161), strings.Repeat("a", 152) + "€a", strings.Repeat("€", 200),
		strings.Repeat("Ж", 71), strings.Repeat("😀", 67), "a\xffb", strings.Repeat("\xf0\x9f", 40), "\x1b[",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := sms.Segments(text), len(split(text)); got != want {
			t.Errorf("Segments(%q) = %d, want %d", text, got, want)
		}
	})
}

// split is the oracle: it encodes the text and cuts the code into parts, as a
// sender would.
func split(text string) [][]uint16 {
	code, isGSM := encode7(text)
	single, part, opens := 160, 153, func(c uint16) bool { return c == 0x1b }
	if !isGSM {
		code = utf16.Encode([]rune(text))
		single, part, opens = 70, 67, func(c uint16) bool { return 0xd800 <= c && c < 0xdc00 }
	}
	if len(code) <= single {
		return [][]uint16{code}
	}
	var parts [][]uint16
	for len(code) > 0 {
		end := min(part, len(code))
		if opens(code[end-1]) { // the other half of the pair is beyond the cut
			end--
		}
		parts = append(parts, code[:end])
		code = code[end:]
	}
	return parts
}

// The default alphabet in the order of its code points, 16 to a line. 0x1B is the
// escape to the extension table and stands for no character.
var gsm7 = []rune("" +
	"@£$¥èéùìòÇ\nØø\rÅå" +
	"Δ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ" +
	" !\"#¤%&'()*+,-./" +
	"0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNO" +
	"PQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmno" +
	"pqrstuvwxyzäöñüà")

var gsm7Extension = map[rune]uint16{
	'\f': 0x0a, '^': 0x14, '{': 0x28, '}': 0x29, '\\': 0x2f,
	'[': 0x3c, '~': 0x3d, ']': 0x3e, '|': 0x40, '€': 0x65,
}

var gsm7Code = func() map[rune]uint16 {
	codes := make(map[rune]uint16)
	for code, r := range gsm7 {
		if code != 0x1b {
			codes[r] = uint16(code)
		}
	}
	return codes
}()

func encode7(text string) (code []uint16, ok bool) {
	for _, r := range text {
		if c, ok := gsm7Code[r]; ok {
			code = append(code, c)
		} else if c, ok := gsm7Extension[r]; ok {
			code = append(code, 0x1b, c)
		} else {
			return nil, false
		}
	}
	return code, true
}
