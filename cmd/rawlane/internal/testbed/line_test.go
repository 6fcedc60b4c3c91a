package testbed

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// A program that prints a line without an end takes no more memory for that: what is longer than a
// line may be is printed as several, and nothing is lost.
func TestLineWriter(t *testing.T) {
	var out bytes.Buffer
	w := &lineWriter{prefix: "[7] ", out: &out, printer: &printer{failed: func(err error) { t.Error(err) }}}
	write := func(text string) {
		t.Helper()
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("%d of %d, %v", n, len(text), err)
		}
		if len(w.rest) > maxLine {
			t.Fatalf("%d bytes are kept", len(w.rest))
		}
	}
	write("one\ntw")
	write("o\n")
	write(strings.Repeat("x", maxLine-1))
	write("\n")
	if got, want := out.String(), "[7] one\n[7] two\n[7] "+strings.Repeat("x", maxLine-1)+"\n"; got != want {
		t.Errorf("%d bytes %.40q, want %d", len(got), got, len(want))
	}
	out.Reset()
	write(strings.Repeat("z", maxLine) + "\nnext\n") // as long as a line may be: one
	if got, want := out.String(), "[7] "+strings.Repeat("z", maxLine)+"\n[7] next\n"; got != want {
		t.Errorf("%d bytes …%q, want %d", len(got), got[len(got)-20:], len(want))
	}
	out.Reset()
	const pieces = 100
	for range pieces {
		write(strings.Repeat("y", 32<<10))
	}
	write("end")
	w.flush()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	length := 0
	for _, line := range lines {
		text, hasPrefix := strings.CutPrefix(line, "[7] ")
		if !hasPrefix || len(text) > maxLine {
			t.Errorf("a line of %d bytes: %.40q", len(line), line)
		}
		length += len(text)
	}
	if want := pieces*(32<<10) + len("end"); length != want || !strings.HasSuffix(lines[len(lines)-1], "end") {
		t.Errorf("%d bytes in %d lines, want %d", length, len(lines), want)
	}
}

// An agent's greeting is none of its program's lines, also where it comes through a pseudo-terminal,
// as by "ssh -tt", which ends lines with a carriage return, too.
func TestLineWriter_Greeting(t *testing.T) {
	for _, text := range []string{"rawlane agent\nhello\n", "rawlane agent\r\nhello\n"} {
		for said, want := range map[string]string{"": "[7] hello\n", "% ": "[7] % \n[7] hello\n"} {
			var out bytes.Buffer
			greeted := 0
			w := &lineWriter{prefix: "[7] ", out: &out, printer: &printer{}, greeted: func() { greeted++ }}
			if _, err := w.Write([]byte(said + text)); err != nil {
				t.Fatal(err)
			}
			if out.String() != want || greeted != 1 {
				t.Errorf("%q: printed %q, want %q; greeted %d times", said+text, &out, want, greeted)
			}
		}
	}
}

// An unfinished last line is not waited for where nobody takes what was printed before.
func TestFlushAll_BeforeABlockedReader(t *testing.T) {
	reader, out := io.Pipe()
	defer reader.Close()
	printer := &printer{failed: func(error) {}}
	blocked, other := &lineWriter{out: out, printer: printer}, &lineWriter{out: out, printer: printer}
	go func() { _, _ = blocked.Write([]byte("line\nand more")) }()
	if _, err := reader.Read(make([]byte, 1)); err != nil { // the rest of the line stays
		t.Fatal(err)
	}
	timeout := make(chan time.Time, 1)
	timeout <- time.Time{}
	flushAll([][2]*lineWriter{{blocked, other}}, timeout) // it returns
}
