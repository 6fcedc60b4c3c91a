package cli

import (
	"strings"
	"testing"
)

// Paragraphs are filled, lines that fit stay, longer ones of a table go on under their column.
func TestWrap(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 25))
	got := wrap("One\ntwo.\n\n  rawlane example\n\n    name    " + long + "\n\n" + long)
	want := "One two.\n\n  rawlane example\n\n    name    " + strings.TrimSpace(strings.Repeat("word ", 17)) +
		"\n            " + strings.TrimSpace(strings.Repeat("word ", 8)) + "\n\n" +
		strings.TrimSpace(strings.Repeat("word ", 20)) + "\n" + strings.TrimSpace(strings.Repeat("word ", 5))
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if word := strings.Repeat("x", 150); wrap(word) != word {
		t.Errorf("a word longer than a line: %s", wrap(word))
	}
}
