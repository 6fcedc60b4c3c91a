//go:build linux

package harness

import (
	"fmt"
	"io"
)

// Target is a number that the project wants to reach.
type Target struct {
	What    string
	Got     float64
	Limit   float64
	AtLeast bool   // else at most
	Note    string // beside the number
}

// Met reports whether it is reached.
func (t Target) Met() bool { return t.Got == t.Limit || t.AtLeast == (t.Got > t.Limit) }

// PrintTargets prints a line for each target.
func PrintTargets(out io.Writer, targets ...Target) {
	width := 0
	for _, t := range targets {
		width = max(width, len(t.What))
	}
	for _, t := range targets {
		verdict := "met"
		if !t.Met() {
			verdict = "NOT met"
		}
		fmt.Fprintf(out, "%-*s  %-8s (%.2f, %slimit %.2f)\n", width, t.What, verdict, t.Got, t.Note, t.Limit)
	}
}
