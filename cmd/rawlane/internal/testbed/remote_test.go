//go:build unix

package testbed

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
		for _, c := range quote(quote(word)) {
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
			out, err := exec.Command(path, "-c", "exec sh -c "+quote("printf %s "+quote(word))).CombinedOutput()
			if err != nil || string(out) != word {
				t.Errorf("%s: %q became %q, %v", shell, word, out, err)
			}
		}
	}
}
