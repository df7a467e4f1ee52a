package feedback

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// node is a part of a JSON document of which nothing is known for sure: whatever is
// missing or of another type is an empty node, down to the last key.
type node struct{ v any }

// parseJSON reads a whole document. One that was cut off by [MaxPeek], or is followed
// by something else, is as good as none: half a document could say half the truth.
// Numbers stay as they are written.
func parseJSON(body []byte) node {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return node{}
	}
	if _, err := d.Token(); err != io.EOF {
		return node{}
	}
	return node{v}
}

// get goes down the keys of nested objects.
func (n node) get(keys ...string) node {
	for _, key := range keys {
		object, _ := n.v.(map[string]any)
		n = node{object[key]}
	}
	return n
}

// list returns the elements of an array; anything but an array has none.
func (n node) list() []node {
	array, _ := n.v.([]any)
	nodes := make([]node, len(array))
	for i, v := range array {
		nodes[i] = node{v}
	}
	return nodes
}

// first returns the first element of an array, and the node itself otherwise.
func (n node) first() node {
	if elements := n.list(); len(elements) > 0 {
		return elements[0]
	}
	return n
}

// text returns a string or, as it is written, a number.
func (n node) text() string {
	switch v := n.v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// says reports whether the text contains the words, which are in lower case.
func (n node) says(words string) bool {
	return strings.Contains(strings.ToLower(n.text()), words)
}
