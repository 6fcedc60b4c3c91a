//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
)

// grid is a table: a row for each program, a column for each size or number of members.
type grid struct {
	name, title, unit string // unit of the columns
	more              bool   // is better
	columns           []int
	cells             []harness.Rows // of each column
	names             []string       // of all rows, in the order of their first results
}

func newGrid(name, title, unit string, columns []int, more bool) *grid {
	cells := make([]harness.Rows, len(columns))
	return &grid{name: name, title: title, unit: unit, more: more, columns: columns, cells: cells}
}

// add adds the result of a round. Columns that the grid does not have do not count.
func (g *grid) add(name string, column int, value float64) {
	for i, c := range g.columns {
		if c == column {
			g.cells[i].Add(name, value)
			if !slices.Contains(g.names, name) {
				g.names = append(g.names, name)
			}
		}
	}
}

// rows are the names of those that have a result: what fails is left out with all that it had.
func (g *grid) rows() (names []string) {
	for _, name := range g.names {
		if len(g.row(name)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// row is a row's cells that have results.
func (g *grid) row(name string) (cells []*harness.Row) {
	for i := range g.columns {
		if cell := g.cell(name, i); cell != nil {
			cells = append(cells, cell)
		}
	}
	return cells
}

// cell is a row in a column; nil if there is no result.
func (g *grid) cell(name string, column int) *harness.Row { return g.cells[column].Find(name) }

// best is the best median of a column.
func (g *grid) best(column int) (best float64) {
	for _, r := range g.cells[column] {
		if m := r.Median(); best == 0 || g.more == (m > best) {
			best = m
		}
	}
	return best
}

// number formats a result with three digits or more.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// spread is the lowest and the highest result of the rounds.
func spread(r *harness.Row) string { return number(r.Min()) + "-" + number(r.Max()) }

// table is the grid for the terminal, and for JSON.
func (g *grid) table(rounds int) *harness.Table {
	const nameWidth, width = 34, 24
	title := fmt.Sprintf("%s: median of %d rounds, and their lowest and highest\n%-*s", g.title, rounds, nameWidth, "")
	for _, c := range g.columns {
		title += fmt.Sprintf(" %*s", width, fmt.Sprintf("%d %s", c, g.unit))
	}
	var rows harness.Rows
	for _, name := range g.rows() {
		rows = append(rows, &harness.Row{Name: name})
	}
	return &harness.Table{
		Title: title, Rows: rows,
		Cells: func(r *harness.Row) []*harness.Row { return g.row(r.Name) },
		Text: func(r *harness.Row) string {
			var b strings.Builder
			fmt.Fprintf(&b, "%-*s", nameWidth, r.Name)
			for i := range g.columns {
				text := "-"
				if cell := g.cell(r.Name, i); cell != nil {
					text = fmt.Sprintf("%8s %15s", number(cell.Median()), spread(cell))
				}
				fmt.Fprintf(&b, " %*s", width, text)
			}
			return b.String()
		},
		JSON: func(r *harness.Row) map[string]any {
			line := map[string]any{"table": g.name, "name": r.Name}
			for i, c := range g.columns {
				if cell := g.cell(r.Name, i); cell != nil {
					line[fmt.Sprintf("%d_%s", c, g.unit)] = []float64{cell.Median(), cell.Min(), cell.Max()}
				}
			}
			return line
		},
	}
}

// markdown is the grid as a table in which the best of each column is bold.
func (g *grid) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| |")
	for _, c := range g.columns {
		fmt.Fprintf(&b, " %d %s |", c, g.unit)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---:|", len(g.columns)))
	for _, name := range g.rows() {
		fmt.Fprintf(&b, "| %s |", name)
		for i := range g.columns {
			cell := g.cell(name, i)
			if cell == nil {
				b.WriteString(" |")
				continue
			}
			median := number(cell.Median())
			if cell.Median() == g.best(i) {
				median = "**" + median + "**"
			}
			fmt.Fprintf(&b, " %s (%s) |", median, strings.Replace(spread(cell), "-", "–", 1))
		}
		b.WriteString("\n")
	}
	return b.String()
}
