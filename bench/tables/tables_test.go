//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const text = `# Title

<!-- measured: go run ./bench/some; only: First; Third -->
` + "```" + `
old
` + "```" + `
<!-- end -->

Text.
`

const printed = `2 cores, Linux 6.1.0, go1.26.0; somewhere

First table, us                    median
a, one                               1.50
b, two = other                       2.50

Second table, us                   median
c                                    3.50

Third: a verdict
a at most 1.6 x b   NOT met  (0.60, limit 1.60)
`

// A document is written as it was read, but for the output of the command; the paragraphs that are
// wanted are chosen by their first lines.
func TestDocument(t *testing.T) {
	d, err := parse("x.md", text)
	if err != nil || len(d.blocks()) != 1 || d.String() != text {
		t.Fatalf("%v, read\n%v", err, d)
	}
	b := d.blocks()[0]
	if b.command != "go run ./bench/some" || fmt.Sprintf("%q", b.only) != `["First" "Third"]` {
		t.Errorf("command %q, only %q", b.command, b.only)
	}
	b.content = b.choose(printed)
	if strings.Contains(b.content, "Second") || !strings.Contains(b.content, "2 cores") || !strings.Contains(b.content, "NOT met") {
		t.Errorf("chose\n%s", b.content)
	}
	again, err := parse("x.md", d.String())
	if err != nil || again.blocks()[0].content != b.content {
		t.Errorf("%v, read again\n%s", err, d)
	}
	b.only = []string{"no such paragraph"}
	if got := b.choose(printed); got != "" {
		t.Errorf("chose\n%s", got)
	}
}

// A block that is not closed, or empty, is an error with its line.
func TestDocument_Faults(t *testing.T) {
	for _, bad := range []string{
		strings.Replace(text, "<!-- end -->", "", 1),
		strings.Replace(text, "old\n", "", 1),
		strings.Replace(text, "```\nold", "old", 1),
	} {
		if _, err := parse("x.md", bad); err == nil || !strings.HasPrefix(err.Error(), "x.md:3: ") {
			t.Errorf("%v of\n%s", err, bad)
		}
	}
}

// A table that has other rows than its command is told, and one without the machine's description.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		content, rows, want string
	}{
		{printed, "a, one|b, two|c", "[]"},
		{printed, "a, one|b, two|c|d", `[row "d" is missing]`},
		{printed, "a, one|c", `[the command has no row "b, two"]`},
		{strings.TrimPrefix(printed, "2 cores"), "a, one|b, two|c", "[the first line does not describe a machine]"},
		{strings.Replace(printed, "c  ", "auto:2  ", 1), "a, one|b, two|auto:64", "[]"},
	} {
		b := &block{content: c.content}
		if got := fmt.Sprint(b.compare(strings.Split(c.rows, "|"))); got != c.want {
			t.Errorf("rows %s: %s, want %s", c.rows, got, c.want)
		}
	}
}

// Commands of documents are programs of this repository, without a shell.
func TestProgram_OfTheRepositoryAlone(t *testing.T) {
	if err := os.Chdir("../.."); err != nil {
		t.Fatal(err)
	}
	for command, good := range map[string]bool{
		"go run ./bench/rate -rounds 1": true, "rawlane bench latency": true, "go run ./bench/none": false,
		"sh -c true": false, "go run example.com/x": false, "go test ./...": false,
	} {
		if _, err := program(t.Context(), command); (err == nil) != good {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// What was edited while the commands ran stays; only the blocks of commands that ran are written.
func TestWrite_KeepsEdits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.md")
	d, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(text, "Text.", "Edited.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.write(map[string]string{"go run ./bench/some": printed, "go run ./bench/other": "x"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(got), "Edited.") || !strings.Contains(string(got), "a, one  ") || strings.Contains(string(got), "old") {
		t.Errorf("%v, wrote\n%s", err, got)
	}
}

// A block that would show nothing is an error, and keeps what it had; the others of its document have
// what was measured. The file is replaced, and not written over.
func TestWrite_ABlockThatShowsNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.md")
	other := strings.Replace(strings.Replace(text, "First; Third", "nowhere", 1), "old", "kept", 1)
	if err := os.WriteFile(name, []byte(other+text), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = before.Close() }()
	d, err := parse(name, other+text)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write(map[string]string{"go run ./bench/some": printed}); err == nil || !strings.Contains(err.Error(), "printed nothing") {
		t.Errorf("%v", err)
	}
	got, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(got), "kept") || strings.Contains(string(got), "old") {
		t.Errorf("%v, wrote\n%s", err, got)
	}
	if was, err := io.ReadAll(before); err != nil || string(was) != other+text {
		t.Errorf("%v, the file that was open has become\n%s", err, was)
	}
}

// Of a command that fails nothing is shown, though it has printed some, unless it is that it misses
// limits; those before and after it are shown.
func TestMeasureAll_ACommandThatFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	program := "#!/bin/sh\ncase \"$4\" in\nfails) echo new, half of it; exit 1;;\n" +
		"misses) echo 'new  NOT met  (2.00, limit 1.00)'; exit 1;;\n*) echo new;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, verb := range []string{"before", "fails", "misses", "after"} {
		shown += "<!-- measured: rawlane bench " + verb + " -->\n```\nold " + verb + "\n```\n<!-- end -->\n"
	}
	name := filepath.Join(dir, "x.md")
	if err := os.WriteFile(name, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	documents, err := readAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = measureAll(t.Context(), documents, regexp.MustCompile("")); err == nil || strings.Count(err.Error(), "exit status 1") != 2 {
		t.Errorf("%v, want that two have failed", err)
	}
	got, err := os.ReadFile(name)
	if err != nil || strings.Count(string(got), "\nnew") != 3 || !strings.Contains(string(got), "old fails") {
		t.Errorf("%v, wrote\n%s", err, got)
	}
}

// The end of the context reaches the benchmark, and not "go run" alone, which passes no signals on.
func TestOutput_EndsTheBenchmark(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	begun, told := filepath.Join(dir, "begun"), filepath.Join(dir, "told")
	program := fmt.Sprintf("#!/bin/sh\ntrap : INT\n"+
		"sh -c 'trap \"echo >%s; exit 1\" TERM; echo >%s; while :; do sleep 0.01; done'\n", told, begun)
	err := errors.Join(os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700), unix.Mkfifo(begun, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // until the benchmark has begun
		_, _ = os.ReadFile(begun)
		cancel()
	}()
	if _, err := output(ctx, "rawlane bench latency"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(told); err != nil {
		t.Errorf("the benchmark was not told to end: %v", err)
	}
}

// An expression that no command matches measures nothing, and is told from one that some do.
func TestMatches(t *testing.T) {
	d, err := parse("x.md", text)
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[string]bool{"": true, "bench/some$": true, "other": false} {
		if got := matches([]*document{d}, regexp.MustCompile(only)); got != want {
			t.Errorf("%q: %v", only, got)
		}
	}
}
