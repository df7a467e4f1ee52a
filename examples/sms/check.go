package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluice-go/sluice/internal/sms"
)

// maxParts is how many parts of a message can be numbered: the header that joins
// them has one octet for it.
const maxParts = 255

// check returns the message that the fields of a record make.
func check(fields []string) (to, text string, parts int, err error) {
	switch len(fields) {
	case 2:
	case 1:
		return "", "", 0, errors.New("1 field, not 2: to,text")
	default:
		return "", "", 0, fmt.Errorf("%d fields, not 2; a text with a comma needs quotes", len(fields))
	}
	to, text = strings.TrimSpace(fields[0]), fields[1]
	switch {
	case !utf8.ValidString(to), !utf8.ValidString(text):
		return "", "", 0, errors.New("not valid UTF-8")
	case to == "":
		return "", "", 0, errors.New("no recipient")
	case !isNumber(to):
		return "", "", 0, errors.New("the recipient is not a phone number")
	}
	parts = sms.Segments(text)
	if parts > maxParts {
		return "", "", 0, fmt.Errorf("the text has %d parts, more than %d", parts, maxParts)
	}
	return to, text, parts, nil
}

// isNumber tells whether s can be dialled: at most 15 digits, as E.164 has it, with
// the usual marks between them. Whether the number exists is for the partner to
// say; here it is about a piece of text behind a broken quote, which must not be
// taken for a customer's address.
func isNumber(s string) bool {
	digits := 0
	for _, c := range strings.TrimPrefix(s, "+") {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case !strings.ContainsRune(" -./()", c):
			return false
		}
	}
	return 3 <= digits && digits <= 15
}
