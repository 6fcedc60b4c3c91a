package ether

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the transcripts")

// Each file of testdata is a story: commands, a line of ----, and what happened, up to an empty
// line. The commands:
//
//	network SPEC        switches that know nobody
//	send FROM TO VID    a frame, by hand from switch to switch
//
// After -rewrite, read the difference.
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
				t.Errorf("it is now:\n%s", is)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// replay does the commands of a story, and returns it with what happens now.
func replay(story string) (string, error) {
	var is, happened strings.Builder
	var w *walker
	outcome := false // of the commands before, to be replaced
	for number, line := range strings.Split(strings.TrimRight(story, "\n"), "\n") {
		switch {
		case line == "----":
			outcome = true
			fmt.Fprintf(&is, "----\n%s", &happened)
			happened.Reset()
		case line == "":
			outcome = false
			is.WriteString("\n")
		case outcome:
		default:
			is.WriteString(line + "\n")
			command, _, _ := strings.Cut(line, "#")
			if err := do(strings.Fields(command), &w, &happened); err != nil {
				return "", fmt.Errorf("line %d, %q: %w", number+1, line, err)
			}
		}
	}
	return is.String(), nil
}

func do(words []string, w **walker, happened *strings.Builder) (err error) {
	switch {
	case len(words) == 0:
	case words[0] == "network" && len(words) == 2:
		*w, err = newWalker(words[1])
	case words[0] == "send" && *w != nil:
		var from, to int
		var vid transport.VID
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &from, &to, &vid); err != nil {
			return err
		}
		visits, hosts := (*w).send(from, to, vid)
		fmt.Fprintf(happened, "%d->%d VID %d\n", from, to, vid)
		for _, v := range visits {
			fmt.Fprintf(happened, "    %s\n", v.text(from, to))
		}
		fmt.Fprintf(happened, "    comes to %s\n", strings.Trim(fmt.Sprint(hosts), "[]"))
	default:
		return fmt.Errorf("no such command, or no network yet")
	}
	return err
}
