package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
)

// WriteJSON prints v as a JSON object on a line of its own.
func WriteJSON(w io.Writer, v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // leaf0>top1 is a name
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, Printable(b.String()))
	return err
}

// Write prints a result: v as JSON, or the text that the function writes.
func Write(w io.Writer, asJSON bool, v any, text func(io.Writer)) error {
	if asJSON {
		return WriteJSON(w, v)
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(w, Printable(b.String()))
	return err
}

// Formats are the flags of a verb that prints Lines in any of their forms.
type Formats struct{ JSON, CSV bool }

// Register defines the flags.
func (f *Formats) Register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.JSON, "json", false, "print one JSON object per line")
	flags.BoolVar(&f.CSV, "csv", false, "print comma-separated values, named as the JSON's are")
}

// Validate is the usage error of who wants both.
func (f *Formats) Validate() error {
	if f.JSON && f.CSV {
		return Misuse("--json and --csv: want one of the two")
	}
	return nil
}

// Lines prints results one by one: as JSON objects, as comma-separated values, or as lines of a
// table under a head. Its progress says what is under way until the next result.
type Lines struct {
	Out       io.Writer
	JSON, CSV bool
	Progress
	head string
}

// Write prints one result: v, or its line. The head is printed when it differs from the last one.
func (l *Lines) Write(v any, head, line string) error {
	l.Clear()
	if l.JSON {
		return WriteJSON(l.Out, v)
	}
	if l.CSV {
		var err error
		if head, line, err = csvLines(v); err != nil {
			return err
		}
	}
	if head != l.head {
		l.head = head
		line = head + line
	}
	_, err := io.WriteString(l.Out, Printable(line))
	return err
}

// Continue makes the lines go on with the table of earlier ones, whose head is not printed again.
func (l *Lines) Continue(earlier *Lines) { l.head = earlier.head }

// Table aligns columns that the function writes with tabs between them.
func Table(w io.Writer, rows func(io.Writer)) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(t)
	_ = t.Flush() // w is a buffer of Write, which takes everything
}

// Micros returns a duration in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Count says how many there are of a thing: "1 node", "2 switches".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "ch") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// NewLogger returns a logger that writes lines of text, or JSON objects.
func NewLogger(w io.Writer, asJSON bool) *slog.Logger {
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

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
		fmt.Fprint(p.out, "\r\x1b[K"+Printable(fmt.Sprintf(format, args...)))
	}
}

// Clear removes the line.
func (p Progress) Clear() { p.Say("") }
