//go:build unix

package cli

import (
	"os/exec"
	"testing"
)

// A login shell passes each argument on as it is: within quotes there is nothing that means
// something to one of them, and those that are on this machine are asked.
func TestQuote(t *testing.T) {
	words := []string{
		"", "two words", "it's", `C:\temp`, `a\\b`, `a\'b`, `\`, "!", "!!", "hi!there", "~ * ? [a] {b,c} # % ^ &",
		"$HOME `id` \"q\" ; | < >", "''", `\n`,
	}
	for _, word := range words {
		quoted, escaped := false, false
		for _, c := range Quote(Quote(word)) {
			switch {
			case c == '\'' && !escaped:
				quoted = !quoted
			case quoted && (c == '\\' || c == '!'):
				t.Errorf("%q: %c is within quotes", word, c)
			}
			escaped = c == '\\' && !quoted && !escaped
		}
		for _, shell := range []string{"sh", "bash", "zsh", "csh", "tcsh", "fish"} {
			path, err := exec.LookPath(shell)
			if err != nil {
				continue
			}
			out, err := exec.Command(path, "-c", "exec sh -c "+Quote("printf %s "+Quote(word))).CombinedOutput()
			if err != nil || string(out) != word {
				t.Errorf("%s: %q became %q, %v", shell, word, out, err)
			}
		}
	}
}

// A word of a command that is shown is in quotes where a shell would take it for another one.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/usr/bin/rawlane-1.2": "/usr/bin/rawlane-1.2", "/my tools/rawlane": "'/my tools/rawlane'", "": "''", "a$b": "'a$b'",
	} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
