package cli

import (
	"fmt"
	"io"
	"os"
)

// Progress tells a person at a terminal what a long run is doing, on one line that is overwritten.
// Anywhere else it says nothing.
type Progress struct{ out io.Writer }

// NewProgress writes to w if that is a terminal.
func NewProgress(w io.Writer) Progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return Progress{w}
		}
	}
	return Progress{io.Discard}
}

func (p Progress) Say(format string, args ...any) {
	fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
}

// Clear removes the line.
func (p Progress) Clear() { p.Say("") }
