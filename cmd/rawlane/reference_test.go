package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var rewrite = flag.Bool("rewrite", false, "write docs/command-reference.md anew, and what pages of docs/papers show")

const referencePage = "../../docs/command-reference.md"

// The reference of all verbs and flags is the command's own help.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# All verbs and flags\n\n*Reference, generated from the command: `go test ./cmd/rawlane -run TestReference -rewrite`.*\n" +
		"[The command](commands.md) is the overview.\n")
	everyVerb(func(cmd *cobra.Command, words []string) {
		out, _, _ := Command(t, append(words, "--help")...)
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimSpace("rawlane "+strings.Join(words, " ")))
		fmt.Fprintf(&b, "```\n%s\n```\n", strings.TrimSpace(out))
	})
	if *rewrite {
		if err := os.WriteFile(referencePage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(referencePage); err != nil || string(got) != b.String() {
		t.Errorf("docs/command-reference.md is not the command's help: write it with: go test ./cmd/rawlane -run TestReference -rewrite")
	}
}

// printed is what a page shows of a command that prints the same on any machine.
var printed = regexp.MustCompile("(?s)(<!-- printed: rawlane ([^\n]*) -->\n```\n)(.*?)(```\n<!-- end -->)")

// What pages of docs/papers show of commands is what these print.
func TestReference_PapersShowWhatIsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: simulations of seconds")
	}
	pages, err := filepath.Glob("../../docs/papers/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown := printed.ReplaceAllFunc(text, func(block []byte) []byte {
			found++
			m := printed.FindSubmatch(block)
			out, errs, status := Command(t, strings.Fields(string(m[2]))...)
			if status != 0 || errs != "" {
				t.Errorf("%s: rawlane %s: status %d, said %s", page, m[2], status, errs)
			}
			return []byte(string(m[1]) + out + string(m[4]))
		})
		if string(shown) == string(text) {
			continue
		}
		if !*rewrite {
			t.Errorf("%s does not show what its commands print: write it with: go test ./cmd/rawlane -run TestReference -rewrite", page)
		} else if err := os.WriteFile(page, shown, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found < 3 {
		t.Errorf("found %d blocks: are they still what this test reads?", found)
	}
}
