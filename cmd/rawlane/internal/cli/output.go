package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// WriteJSON prints v as a JSON object on a line of its own.
func WriteJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Count is a number of things in words.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "ch") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// VerbNames lists the verbs below one: "a, b or c".
func VerbNames(cmd *cobra.Command) string {
	text, all := "", cmd.Commands()
	for i, c := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			text += " or "
		default:
			text += ", "
		}
		text += c.Name()
	}
	return text
}
