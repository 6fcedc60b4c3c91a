package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var rewrite = flag.Bool("rewrite", false, "write docs/command-reference.md anew")

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
