package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns a text in which a terminal finds nothing to obey: what it would not print, an
// escape for example, is shown as \u001b. Managers and other nodes have a part in what verbs print
// and in errors. Lines and tabs stay.
func Printable(text string) string {
	if strings.IndexFunc(text, isHidden) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case !isHidden(r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, "\\x%02x", text[i]) // no UTF-8: some terminals obey bytes
		case r == utf8.RuneError:
			b.WriteRune(r)
		default:
			for _, u := range utf16.AppendRune(nil, r) { // as JSON has it
				fmt.Fprintf(&b, "\\u%04x", u)
			}
		}
	}
	return b.String()
}

func isHidden(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsPrint(r)
}
