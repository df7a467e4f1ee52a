package main

import (
	_ "embed"
	"io"
	"os"
	"strings"
)

//go:embed sample.csv
var sample string

// An input is where the messages come from.
type input struct {
	io.Reader
	size  int64 // in bytes; -1 if it is not known
	close func() error
}

// openInput opens the file of that name. "-" is the standard input, and no name the
// sample.
func openInput(name string, stdin io.Reader) (*input, error) {
	keepOpen := func() error { return nil }
	switch name {
	case "":
		return &input{strings.NewReader(sample), int64(len(sample)), keepOpen}, nil
	case "-":
		return &input{stdin, -1, keepOpen}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return &input{file, size, file.Close}, nil
}

// stream reads entries in the background, because a read from a terminal or a pipe
// cannot be called off, but receiving from the channel can. No more than one entry is
// read in advance. It ends with the input or when quit is closed, unless it hangs
// in a read by then. The result of end is valid once the channel is closed: nil, or
// why the rest could not be read.
func stream(in io.Reader, quit <-chan struct{}) (entries <-chan entry, end func() error) {
	out := make(chan entry)
	var failure error
	go func() {
		defer close(out)
		r := newCSVReader(in)
		for {
			e, err := r.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				failure = err
				return
			}
			select {
			case out <- e:
			case <-quit:
				return
			}
		}
	}()
	return out, func() error { return failure }
}
