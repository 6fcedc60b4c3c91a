//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/bench/harness"
)

// filled is a grid of three programs, one of which has no result for the longer messages.
func filled(more bool) *grid {
	g := newGrid("latency", "Half a round trip, us", "bytes", []int{64, 1400}, more)
	for _, r := range []struct {
		name  string
		size  int
		value float64
	}{{"C", 64, 1}, {"C", 64, 3}, {"C", 64, 2}, {"C", 1400, 20}, {"Go", 64, 30.04}, {"Go", 1400, 400.4}, {"MPI", 64, 5}, {"MPI", 9000, 1}} {
		g.add(r.name, r.size, r.value)
	}
	return g
}

// Medians with their spread, the best of each column in bold; what a program lacks is empty.
func TestGrid_Markdown(t *testing.T) {
	const less = `| | 64 bytes | 1400 bytes |
|---|---:|---:|
| C | **2.00** (1.00–3.00) | **20.0** (20.0–20.0) |
| Go | 30.0 (30.0–30.0) | 400 (400–400) |
| MPI | 5.00 (5.00–5.00) | |
`
	if got := filled(false).markdown(); got != less {
		t.Errorf("got\n%swant\n%s", got, less)
	}
	if got := filled(true).markdown(); !strings.Contains(got, "| Go | **30.0** (30.0–30.0) | **400** (400–400) |") || strings.Count(got, "**") != 4 {
		t.Errorf("more is better:\n%s", got)
	}
}

func TestGrid_Text(t *testing.T) {
	table := filled(false).table(3)
	if !strings.Contains(table.Title, "Half a round trip, us: median of 3 rounds") || !strings.HasSuffix(table.Title, "1400 bytes") {
		t.Errorf("%q", table.Title)
	}
	var rows []string
	for _, r := range table.Rows {
		rows = append(rows, strings.Join(strings.Fields(table.Text(r)), " "))
	}
	want := "C 2.00 1.00-3.00 20.0 20.0-20.0|Go 30.0 30.0-30.0 400 400-400|MPI 5.00 5.00-5.00 -"
	if got := strings.Join(rows, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := table.JSON(table.Rows[0]); got["64_bytes"].([]float64)[2] != 3 || got["name"] != "C" {
		t.Errorf("%v", got)
	}
}

// All results of a grid of two columns and three rounds are told; a row that has been left out is not
// there.
func TestGrid_AllResults(t *testing.T) {
	g := newGrid("latency", "Half a round trip, us", "bytes", []int{64, 1400}, false)
	for range 3 {
		g.add("C", 64, 1)
		g.add("C", 1400, 2)
		g.add("gone", 64, 3)
	}
	g.cells[0].Drop("gone")
	table := g.table(3)
	all := 0
	for _, r := range table.Rows {
		for _, cell := range table.Cells(r) {
			all += len(cell.Values)
		}
	}
	if all != 6 || len(table.Rows) != 1 || strings.Contains(g.markdown(), "gone") {
		t.Errorf("%d rows with %d results, want 1 with 6\n%s", len(table.Rows), all, g.markdown())
	}
}

// The document has a section, a table and a picture for each grid with results.
func TestWrite(t *testing.T) {
	c := &compare{Bench: &harness.Bench{Name: "compare", Link: "a cable", Rounds: 3}}
	c.makeGrids()
	c.latency = filled(false)
	file := filepath.Join(t.TempDir(), "sub", "RESULTS.md")
	if err := errors.Join(checkFile(file), c.write(file)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a cable", "3 rounds", "## Half a round trip, us\n\n| |", "](results-latency.svg)", "go run ./bench/compare"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(string(text), "\n## ") != 1 {
		t.Errorf("sections without results in\n%s", text)
	}
	svg, err := os.Open(filepath.Join(filepath.Dir(file), "results-latency.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = svg.Close() }()
	for d := xml.NewDecoder(svg); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
