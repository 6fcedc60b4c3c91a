package main

import (
	"fmt"
	"io"
	"os"
)

// progress tells a person at a terminal what a long run is doing, on one line that is overwritten. Anywhere else it
// says nothing.
type progress struct{ out io.Writer }

// newProgress writes to w if that is a terminal.
func newProgress(w io.Writer) progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return progress{w}
		}
	}
	return progress{io.Discard}
}

func (p progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
}

// clear removes the line.
func (p progress) clear() { p.say("") }
