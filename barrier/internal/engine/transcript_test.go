package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the transcripts")

// Each file of testdata is a story: commands, a line of ----, and the outcome up to an empty
// line. See transcript for the commands. After -rewrite, read the difference.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			is, err := replay(string(was))
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
		})
	}
}

// replay runs the commands of a story, and returns it with the present outcome.
func replay(story string) (string, error) {
	var is strings.Builder
	tr := new(transcript)
	outcome := false // of the commands before, to be replaced
	for number, line := range strings.Split(strings.TrimRight(story, "\n"), "\n") {
		switch {
		case line == "----":
			outcome = true
			fmt.Fprintf(&is, "----\n%s\n", tr.happened())
		case line == "":
			outcome = false
			is.WriteString("\n")
		case outcome:
		default:
			is.WriteString(line + "\n")
			command, _, _ := strings.Cut(line, "#")
			if err := tr.do(strings.Fields(command)); err != nil {
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
