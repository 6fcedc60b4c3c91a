// Package transcript tests cores by stories: text files of what goes in, and of what comes out at
// which instant of virtual time.
//
//	arrive 0 1 2                    commands of the core's own
//	deliver drop=notify:0->2        and of Net: frames arrive, time passes
//	----
//	1->0 notify   0->2 notify (lost to 2)    what happened
//	0 left   1 left   2 waiting              and the states
//
// A story ends with its file; an empty line ends the outcome. Behind # is a comment. After
// go test -run TestTranscripts -rewrite, read the difference.
package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the transcripts")

// Rewrite reports whether golden files are to be written anew.
func Rewrite() bool { return *rewrite }

// World is what the commands of a story change.
type World interface {
	// Do runs a command.
	Do(words []string) error
	// Happened returns what has happened since the last call, and the states: lines, none empty.
	Happened() string
}

// Test replays each of the files, in a world of its own.
func Test(t *testing.T, pattern string, world func() World) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts %s: %v", pattern, err)
	}
	outcomes := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			is, err := Replay(string(was), world())
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				err = os.WriteFile(file, []byte(is), 0o644)
			} else if is != string(was) {
				t.Errorf("it is now:\n%s", difference(string(was), is))
			}
			if err != nil {
				t.Fatal(err)
			}
			outcomes += strings.Count(is, "\n----\n")
		})
	}
	t.Logf(`figures {"scripts":%d,"outcomes":%d}`, len(files), outcomes)
}

// Replay runs the commands of a story, and returns it with the present outcome.
func Replay(story string, w World) (string, error) {
	var is strings.Builder
	outcome := false // of the commands before, to be replaced
	for number, line := range strings.Split(strings.TrimRight(story, "\n"), "\n") {
		switch {
		case line == "----":
			outcome = true
			fmt.Fprintf(&is, "----\n%s\n", w.Happened())
		case line == "":
			outcome = false
			is.WriteString("\n")
		case outcome:
		default:
			is.WriteString(line + "\n")
			command, _, _ := strings.Cut(line, "#")
			words := strings.Fields(command)
			if len(words) == 0 {
				continue
			}
			if err := w.Do(words); err != nil {
				return "", fmt.Errorf("line %d, %q: %w", number+1, line, err)
			}
		}
	}
	return is.String(), nil
}

// difference returns the first line that differs.
func difference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return fmt.Sprintf("line %d: %s\nwant:    %s", i+1, b[i], append(a, "end", "end")[min(i, len(a))])
		}
	}
	return "shorter"
}
