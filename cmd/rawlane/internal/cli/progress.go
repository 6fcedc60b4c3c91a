package cli

import (
	"fmt"
	"io"
	"os"
)

// Progress shows the state of a long run on one line of a terminal, overwritten each time. It
// prints nothing to files and pipes; nor does the zero Progress.
type Progress struct{ out io.Writer }

// NewProgress returns the progress line of w.
func NewProgress(w io.Writer) Progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return Progress{w}
		}
	}
	return Progress{}
}

// Say replaces the line.
func (p Progress) Say(format string, args ...any) {
	if p.out != nil {
		fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
	}
}

// Clear removes the line.
func (p Progress) Clear() { p.Say("") }
