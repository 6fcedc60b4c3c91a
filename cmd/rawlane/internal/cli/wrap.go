package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// helpColumns is the width of all help: of a terminal beside which there is room for another.
const helpColumns = 100

// wrapHelp fits the help of a command and its verbs into helpColumns.
func wrapHelp(cmd *cobra.Command) {
	cmd.Long = wrap(cmd.Long)
	for _, c := range cmd.Commands() {
		wrapHelp(c)
	}
}

// wrap fills paragraphs, and folds longer lines of tables under their second column. Indented lines
// that fit stay as they are.
func wrap(text string) string {
	var out, paragraph []string
	fill := func() {
		out = append(out, fold(strings.Join(paragraph, " "), "")...)
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			fill()
			out = append(out, "")
		case strings.HasPrefix(line, " "):
			fill()
			out = append(out, fold(line, strings.Repeat(" ", column(line)))...)
		default:
			paragraph = append(paragraph, line)
		}
	}
	fill()
	return strings.Join(out, "\n")
}

// column returns where the second column of an indented line begins: behind the last gap of two
// blanks or more.
func column(line string) int {
	if gap := strings.LastIndex(line, "  "); gap >= 0 {
		return gap + 2
	}
	return 0
}

// fold breaks a line at blanks where it gets too long; what follows is indented.
func fold(line, indent string) (lines []string) {
	if line == "" {
		return nil
	}
	for len(line) > helpColumns {
		end := strings.LastIndex(line[:helpColumns+1], " ")
		if end <= len(indent) {
			break // a word longer than a line
		}
		lines = append(lines, strings.TrimRight(line[:end], " "))
		line = indent + line[end+1:]
	}
	return append(lines, line)
}
