package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"node 1\t02:00:00:00:00:01\n": "node 1\t02:00:00:00:00:01\n",
		"12 µs, naïve \ufffd":         "12 µs, naïve \ufffd",
		"\x1b[2J\r\a\x7f":             `\u001b[2J\u000d\u0007\u007f`,
		"\u009b2J":                    `\u009b2J`, // an escape of one character
		"\x9b2J":                      `\x9b2J`,   // and of one byte
		"exe.\u202egnp":               `exe.\u202egnp`,
		"\U000e0041":                  `\udb40\udc41`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Whatever way a text takes to a terminal, it finds nothing to obey there.
func TestNothingForATerminalToObey(t *testing.T) {
	const text, shown = "by \x1b[2J\u009b1m", `by \u001b[2J\u009b1m`
	ways := map[string]func(io.Writer) error{
		"a result": func(w io.Writer) error {
			return Write(w, false, nil, func(w io.Writer) { fmt.Fprintln(w, text) })
		},
		"a line":           func(w io.Writer) error { return (&Lines{Out: w}).Write(nil, "head\n", text+"\n") },
		"a progress":       func(w io.Writer) error { Progress{w}.Say("%s", text); return nil },
		"JSON":             func(w io.Writer) error { return WriteJSON(w, text) },
		"a line's JSON":    func(w io.Writer) error { return (&Lines{Out: w, JSON: true}).Write(text, "", "") },
		"a result's JSON":  func(w io.Writer) error { return Write(w, true, text, nil) },
		"a result's error": func(w io.Writer) error { return saysError(w, errors.New(text)) },
		"a usage error":    func(w io.Writer) error { return saysError(w, Misuse("%s", text)) },
	}
	for name, way := range ways {
		var out bytes.Buffer
		if err := way(&out); err != nil {
			t.Error(name, err)
		}
		got := strings.TrimPrefix(out.String(), "\r\x1b[K") // the progress line's own
		if !strings.Contains(got, shown) || Printable(got) != got {
			t.Errorf("%s: %q", name, got)
		}
		if strings.Contains(name, "JSON") {
			var back string
			if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
				t.Errorf("%s: read back as %q, %v", name, back, err)
			}
		}
	}
}

// saysError has a command that fails say why.
func saysError(w io.Writer, err error) error {
	root := &cobra.Command{
		Use: "fails", SilenceErrors: true, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return err },
	}
	if status := Execute(context.Background(), root, []string{}, nil, w, w); status == ExitDone {
		return errors.New("it has not failed")
	}
	return nil
}
