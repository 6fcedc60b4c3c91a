//go:build linux

package harness

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Report is the result of a benchmark.
type Report struct {
	Tables  []*Table
	Targets []Target
	Note    string       // the last line; may be empty
	Save    func() error // keeps the results in files, once they are printed; may be nil
}

// Table is rows, and how they are printed.
type Table struct {
	Rows
	Title  string            // with the heads of what Text prints; if empty, the table continues the one before
	Cells  func(*Row) []*Row // that have a row's results; nil: it has them itself
	Text   func(*Row) string
	JSON   func(*Row) map[string]any
	Ratios []Ratio // behind Text, and in JSON
	Width  int     // of a ratio in text
}

// Ratio is a column: each row's median divided by that of the row To. Without that row it is left
// out.
type Ratio struct {
	Head, Key string // in text, in JSON
	To        func() *Row
}

// Target is a number that the project wants to reach.
type Target struct {
	What    string
	Got     float64 // NaN: a row was left out, and so is the target
	Limit   float64
	AtLeast bool   // else at most
	Note    string // beside the number
}

// leftOut reports whether there is no result, as without a C compiler.
func (t *Target) leftOut() bool { return math.IsNaN(t.Got) }

// met reports whether the limit is kept. Infinitely more than another is more than one that had no
// result at all, and no success.
func (t *Target) met() bool {
	return !math.IsInf(t.Got, 0) && (t.Got == t.Limit || t.AtLeast == (t.Got > t.Limit))
}

// digits returns how many digits behind the point a result and its limit have: two, or more where
// these would look alike, and are not.
func (t *Target) digits() int {
	const least, most = 2, 15
	digits := least
	for digits < most && t.Got != t.Limit &&
		strconv.FormatFloat(t.Got, 'f', digits, 64) == strconv.FormatFloat(t.Limit, 'f', digits, 64) {
		digits++
	}
	return digits
}

// notMet lists the targets that were measured and not met.
func (r *Report) notMet() (names []string) {
	for _, t := range r.Targets {
		if !t.leftOut() && !t.met() {
			names = append(names, t.What)
		}
	}
	return names
}

// printRows prints the names of all rows, one a line.
func (r *Report) printRows(out io.Writer) error {
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if _, err := fmt.Fprintln(out, row.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewTable makes a table of medians, whose key in JSON is given; size is 0 where nothing is sent.
func NewTable(title, key string, size, rounds int) *Table {
	return &Table{
		Title: fmt.Sprintf("%s; median of %d rounds\n%-34s %12s %27s", title, rounds, "", "median", "of the rounds"),
		Text: func(r *Row) string {
			return fmt.Sprintf("%-34s %12.2f %12.2f - %12.2f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *Row) map[string]any {
			line := map[string]any{"name": r.Name, key: r.Median(), "lowest": r.Min(), "highest": r.Max(),
				"rounds": r.Rounds()}
			if size > 0 {
				line["size_bytes"] = size
			}
			return line
		},
		Width: 9,
	}
}

// AddRatio adds a column of ratios to the row with a name.
func (t *Table) AddRatio(head, key, name string) {
	t.Ratios = append(t.Ratios, Ratio{head, key, func() *Row { return t.Find(name) }})
}

// cells are the rows that have the results of a line.
func (t *Table) cells(row *Row) []*Row {
	if t.Cells == nil {
		return []*Row{row}
	}
	return t.Cells(row)
}

// line returns what is printed of a row as JSON.
func (t *Table) line(row *Row) map[string]any {
	line := t.JSON(row)
	slowed := 0
	for _, cell := range t.cells(row) {
		slowed += cell.slowed()
	}
	line["slowed"] = slowed
	for _, ratio := range t.Ratios {
		to := ratio.To()
		if to == nil {
			continue
		}
		if over := row.Over(to); !math.IsInf(over, 0) { // JSON has no infinity
			line[ratio.Key] = over
		}
	}
	return line
}

func (r *Report) print(out io.Writer) {
	for i, t := range r.Tables {
		if t.Title != "" && i > 0 {
			fmt.Fprintln(out)
		}
		t.print(out)
	}
	fmt.Fprintln(out)
	r.printSlowed(out)
	targets := slices.DeleteFunc(r.Targets, func(t Target) bool { return t.leftOut() })
	width := 0
	for _, t := range targets {
		width = max(width, len(t.What))
	}
	for _, t := range targets {
		verdict := "NOT met"
		if t.met() {
			verdict = "met"
		}
		digits := t.digits()
		fmt.Fprintf(out, "%-*s  %-8s (%.*f, %slimit %.*f)\n",
			width, t.What, verdict, digits, t.Got, t.Note, digits, t.Limit)
	}
	fmt.Fprint(out, r.Note)
}

// printSlowed says how many results were slowed, and how many of these do not count.
func (r *Report) printSlowed(out io.Writer) {
	slowed, dropped, all := 0, 0, 0
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			for _, cell := range t.cells(row) {
				slowed += cell.slowed()
				dropped += len(cell.Values) - cell.Rounds()
				all += len(cell.Values)
			}
		}
	}
	if slowed == 0 {
		return
	}
	fmt.Fprintf(out, "Others of this machine slowed the cores, or moved them apart, during %d of %d results; "+
		"%d of these do not count: those of tables whose rows all have better ones.\n\n", slowed, all, dropped)
}

func (t *Table) print(out io.Writer) {
	if t.Title != "" {
		fmt.Fprint(out, t.Title)
		for _, ratio := range t.Ratios {
			if ratio.To() != nil {
				fmt.Fprintf(out, " %*s", t.Width, ratio.Head)
			}
		}
		fmt.Fprintln(out)
	}
	for _, row := range t.Rows {
		fmt.Fprint(out, t.Text(row))
		for _, ratio := range t.Ratios {
			if to := ratio.To(); to != nil {
				fmt.Fprintf(out, " %*.2f", t.Width, row.Over(to))
			}
		}
		fmt.Fprintln(out)
	}
}
