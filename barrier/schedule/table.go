package schedule

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table says which algorithm is the quickest for groups of a cluster, as it was measured or as its
// owner wants it. A nil Table has no rows. All members of a group must give the same one, and a
// Table that was given to a service is not changed any more.
type Table struct{ rows map[group]Row }

// Row is what a table says of groups of a size.
type Row struct {
	Ranks     int
	Where     string // the ranks run, as Shape.String says it; "": anywhere, if there is no other row
	Algorithm Algorithm
	Mean      time.Duration // of a barrier; 0: not measured
}

// group is the groups that a row is for.
type group struct {
	ranks int
	where string
}

// ParseTable reads a table. The name is for errors.
//
//	# table 2: "# end" is the last line
//	# ranks  algorithm   us       where they run
//	4        concurrent  1.340    1 host: 4 ranks on 2 cores
//	32       tree:8      152.200  1 host: 32 ranks on 2 cores
//	32       tree:4      -                                    # of 32 ranks that run anywhere else
//	# end
//
// Microseconds are rounded to nanoseconds. Errors name the line. A group that has two rows is one,
// and so are words which no Shape of so many ranks says of where they run. A table that begins as
// this one needs its end: without it, it was cut. One without that line, as it is written by hand,
// needs none, but a row.
func ParseTable(name string, r io.Reader) (*Table, error) {
	p := &tableParser{table: &Table{}}
	in := bufio.NewScanner(r)
	line := 1
	for ; in.Scan(); line++ {
		if err := p.line(in.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if rows := len(p.table.rows); !p.ended && (p.needsEnd || rows == 0) {
		return nil, fmt.Errorf("%s:%d: no %q behind its rows (%d): "+
			"the file was cut (copy it again, or write it anew by rawlane tune)", name, line, tableEnd, rows)
	}
	return p.table, nil
}

const (
	// tableHead begins the line that tells a table's format, with a number and a colon behind it.
	tableHead = "# table "
	// tableFormat is that of the tables which have an end.
	tableFormat = 2
	// tableEnd is the last line of such a table.
	tableEnd = "# end"
)

// tableParser reads a table's lines.
type tableParser struct {
	table           *Table
	needsEnd, ended bool
}

func (p *tableParser) line(text string) error {
	if text = strings.TrimSpace(text); text == tableEnd {
		p.ended = true
		return nil
	}
	if rest, isHead := strings.CutPrefix(text, tableHead); isHead {
		number, _, _ := strings.Cut(rest, ":")
		format, err := strconv.Atoi(number)
		if err == nil && format != tableFormat {
			return fmt.Errorf("a table of format %d: want %d (is this program as new as the one that wrote it?)",
				format, tableFormat)
		}
		p.needsEnd = p.needsEnd || err == nil
	}
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	row, err := parseRow(words)
	switch {
	case err != nil:
		return err
	case p.ended && p.needsEnd:
		return fmt.Errorf("a row behind %q: want that line to be the last one", tableEnd)
	case p.table.has(row):
		return fmt.Errorf("a second row of %d ranks, %q", row.Ranks, row.Where)
	}
	p.table.Set(row)
	return nil
}

func parseRow(words []string) (row Row, err error) {
	if len(words) < 3 {
		return row, fmt.Errorf("%q: want how many ranks, an algorithm, its microseconds or -, and where they run",
			strings.Join(words, " "))
	}
	if row.Ranks, err = strconv.Atoi(words[0]); err != nil || row.Ranks < 2 || row.Ranks > maxNumber {
		return row, fmt.Errorf("%q: want how many ranks, of 2 to %d", words[0], maxNumber)
	}
	if row.Algorithm, err = Parse(words[1]); err != nil {
		return row, err
	}
	if words[2] != "-" {
		us, err := strconv.ParseFloat(words[2], 64)
		if err != nil || !(us >= 0 && us <= 1e9) { // NaN is neither
			return row, fmt.Errorf("%q: want microseconds, or -", words[2])
		}
		row.Mean = time.Duration(math.Round(us * float64(time.Microsecond)))
	}
	row.Where = strings.Join(words[3:], " ")
	if err := checkWhere(row.Ranks, row.Where); err != nil {
		return row, err
	}
	if err := row.Algorithm.Check(min(row.Ranks, maxWalk)); err != nil {
		return row, err
	}
	return row, nil
}

func (t *Table) has(r Row) bool {
	_, has := t.rows[group{r.Ranks, r.Where}]
	return has
}

// Set adds a row, in place of the one for the same groups. A row without an algorithm is for none.
func (t *Table) Set(r Row) {
	if t.rows == nil {
		t.rows = map[group]Row{}
	}
	t.rows[group{r.Ranks, r.Where}] = r
}

// Rows returns the rows, ordered by ranks.
func (t *Table) Rows() []Row {
	if t == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.rows), func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Where, b.Where))
	})
}

// Choose returns the algorithm for a group of so many ranks: that of the table's row for it (Find)
// or, if there is none, the one that the model chooses. Of a row that says auto it is what Auto is
// for that size.
func (t *Table) Choose(s Shape, size int) Algorithm {
	if r, has := t.Find(s, size); has {
		return r.Algorithm.For(size)
	}
	return s.Choose(size)
}

// Find returns the row for a group of so many ranks: the one which says of where they run what
// s.String does, or else that of ranks that run anywhere.
func (t *Table) Find(s Shape, size int) (row Row, has bool) {
	if t == nil {
		return row, false
	}
	for _, where := range []string{s.String(), ""} {
		if r, has := t.rows[group{size, where}]; has && !r.Algorithm.IsZero() {
			return r, true
		}
	}
	return row, false
}

// WriteTo writes the table as ParseTable reads it. It writes nothing, and returns an error, if
// ParseTable would read a row as another one or not at all: such as one without an algorithm, or
// with one that has no name for Parse.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d: %q is the last line\n", tableHead, tableFormat, tableEnd)
	fmt.Fprintf(&b, "%-8s %-22s %10s  %s\n", "# ranks", "algorithm", "us", "where they run")
	for _, r := range t.Rows() {
		us := "-"
		if r.Mean > 0 {
			us = strconv.FormatFloat(float64(r.Mean)/float64(time.Microsecond), 'f', 3, 64) // to the nanosecond
		}
		line := strings.TrimRight(fmt.Sprintf("%-8d %-22s %10s  %s", r.Ranks, r.Algorithm, us, r.Where), " ")
		if err := r.readFrom(line); err != nil {
			return 0, fmt.Errorf("schedule: a row of %d ranks, %q: %w", r.Ranks, r.Where, err)
		}
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b, tableEnd)
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// readFrom returns an error unless a line is read as r.
func (r *Row) readFrom(line string) error {
	text, _, _ := strings.Cut(line, "#")
	got, err := parseRow(strings.Fields(text))
	if err != nil {
		return err
	}
	if got.Ranks != r.Ranks || got.Where != r.Where || got.Mean != r.Mean || got.Algorithm.name != r.Algorithm.name {
		return fmt.Errorf("%q: it would be read as another one", line)
	}
	return nil
}

// Rank puts measured costs in order, the best first. Of those that cost nearly the least that is
// the one with the fewest frames, as with Choices; the others follow by cost.
func Rank(measured []Choice) []Choice { return best(slices.Clone(measured), nearly) }
