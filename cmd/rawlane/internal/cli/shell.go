package cli

import (
	"strings"
	"unicode"
)

// Quote makes a word of a POSIX shell, which csh and fish take for the same, but for a line's end
// in csh: within quotes a backslash means something to fish, and an exclamation mark to csh.
func Quote(word string) string { return "'" + outsideQuotes.Replace(word) + "'" }

var outsideQuotes = strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`)

// ShellWord is a word for a command that is shown: in quotes only where a shell needs them.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@,", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return Quote(word)
}
