package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// everyVerb calls f with each verb, as words of a command line.
func everyVerb(f func(cmd *cobra.Command, words []string)) {
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		f(cmd, words)
		for _, c := range cmd.Commands() {
			if c.Name() != "completion" && !c.Hidden { // cobra's own
				walk(c, append(words[:len(words):len(words)], c.Name()))
			}
		}
	}
	walk(cli.NewRoot(verbs), nil)
}

// Help fits a terminal of 100 columns, and shows each verb in use.
func TestHelp_FitsAndHasAnExample(t *testing.T) {
	seen := 0
	everyVerb(func(cmd *cobra.Command, words []string) {
		seen++
		out, errs, status := Command(t, append(words, "--help")...)
		if status != cli.ExitDone || errs != "" {
			t.Fatalf("%v: status %d, said %s", words, status, errs)
		}
		for line := range strings.Lines(out) {
			if columns := len([]rune(strings.TrimRight(line, "\n"))); columns > 100 {
				t.Errorf("%v: %d columns: %s", words, columns, line)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		if example := "\n  rawlane " + strings.Join(words, " "); !strings.Contains(out, example) && !strings.Contains(out, "| rawlane "+words[0]) {
			t.Errorf("%v: no example in its help", words)
		}
	})
	if seen < 30 {
		t.Errorf("%d verbs: has the walk missed some?", seen)
	}
}

// What the shell offers for a flag are values that the flag takes.
func TestCompletion_OffersValues(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"bench latency --link r", "ring\n"},
		{"bench barrier --algo shuffle,con", "shuffle,concurrent\n"},
		{"bench latency --beside u", "udp\n"},
		{"bench barrier --mode th", "threads\n"},
		{"sim vbft --experiment fig1", "fig11\n"},
		{"doctor --interface l", "lo\n"},
		{"help benc", "bench\n"},
	} {
		out, _, _ := Command(t, append([]string{"__complete"}, strings.Fields(c.line)...)...)
		if !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: offered\n%swant %q", c.line, out, c.want)
		}
	}
}

// A word with a typing error is told from one that is another word altogether.
func TestNearest(t *testing.T) {
	words := []string{"bench", "barrier", "route", "node", "nodes"}
	for _, c := range []struct{ typed, want string }{
		{"benhc", "[bench]"}, {"bennch", "[bench]"}, {"Barier", "[barrier]"}, {"nods", "[node nodes]"},
		{"bar", "[barrier]"}, {"nonsense", "[]"}, {"x", "[]"}, {"", "[]"},
	} {
		if got := fmt.Sprint(cli.Nearest(c.typed, words)); got != c.want {
			t.Errorf("%q: %s, want %s", c.typed, got, c.want)
		}
	}
}
