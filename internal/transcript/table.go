package transcript

import (
	"os"
	"strings"
	"testing"
)

// Table runs the tests of a state table in a comment, whose head line is "state event next". Rows
// are named by their first two columns, "Idle: Arrive". Each row has a test, and each test a row.
func Table(t *testing.T, file string, rows map[string]func(t *testing.T)) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := tableRows(string(source))
	for _, name := range names {
		if test := rows[name]; test != nil {
			t.Run(name, test)
		} else {
			t.Errorf("no test of the row %q", name)
		}
	}
	if len(names) != len(rows) {
		t.Errorf("%d tests, for a table of %d rows", len(rows), len(names))
	}
}

// tableRows returns the names of the rows of the first table.
func tableRows(source string) (names []string) {
	event, next := 0, 0 // columns
	for line := range strings.Lines(source) {
		row, is := strings.CutPrefix(line, "//\t")
		switch {
		case next == 0 && is && strings.HasPrefix(row, "state "):
			event, next = strings.Index(row, "event"), strings.Index(row, "next")
		case next > 0 && (!is || len(row) <= next): // behind the table
			return names
		case next > 0:
			names = append(names, strings.TrimSpace(row[:event])+": "+strings.TrimSpace(row[event:next]))
		}
	}
	return names
}
