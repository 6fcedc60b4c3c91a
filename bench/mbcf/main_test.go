//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/bench/harness"
)

// A program that fails says why.
func TestProgram_ThatFails(t *testing.T) {
	rawlane := filepath.Join(t.TempDir(), "rawlane")
	if err := os.WriteFile(rawlane, []byte("#!/bin/sh\necho the result is not verified >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tables, _ := newTables()
	err := tables.program(t.Context(), &harness.Programs{Rawlane: rawlane}, "CG", "cg")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "is not verified") {
		t.Error(err)
	}
}

// The streams both ways at once have no column of the paper, which has streams one way alone; that
// one way is compared with the full duplex network's.
func TestMBCF_2_3_StreamsAreOneWay(t *testing.T) {
	tables, all := newTables()
	if len(all) != 7 {
		t.Fatalf("%d tables, want 7", len(all))
	}
	oneWay, bothWays := &harness.Row{Name: "1024 bytes"}, &harness.Row{Name: "1024 bytes"}
	oneWay.Values, bothWays.Values = []float64{20.44}, []float64{5}
	if got := strings.Fields(tables.oneWay.Text(oneWay)); strings.Join(got, " ") != "1024 bytes 8.08 10.22 20.44 2.00" {
		t.Error(got)
	}
	if got := strings.Fields(tables.bothWays.Text(bothWays)); strings.Join(got, " ") != "1024 bytes 5.00" {
		t.Error(got)
	}
}

// As in the paper there are the tables of programs alone, which are told.
func TestProgram_AsInThePaper(t *testing.T) {
	*asPaper = true
	defer func() { *asPaper = false }()
	rawlane := filepath.Join(t.TempDir(), "rawlane")
	const script = "#!/bin/sh\necho \"$@\" >&2\nexit 1\n"
	if err := os.WriteFile(rawlane, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	tables, all := newTables()
	if len(all) != 4 {
		t.Errorf("%d tables, want 4", len(all))
	}
	err := tables.program(t.Context(), &harness.Programs{Rawlane: rawlane}, "CG", "cg")
	if err == nil || !strings.Contains(err.Error(), " cg -class W -paper") {
		t.Error(err)
	}
}

// Programs are those of table 3 that are examples, in its order, and each has what it says there.
// There is no ratio to a rate of 0.00.
func TestMBCF_3_3_Programs(t *testing.T) {
	want := map[string]string{
		"EP": "0.00 4.00 51.10", "MG": "9.68 4670.00 0.01", "CG": "12.69 2138.00 53.33", "IS": "13.58 466.00 99.22",
		"LU": "1.89 1199.00 13.37",
	}
	if got := strings.Join(kernels, " "); got != "EP MG CG IS LU" {
		t.Error(got)
	}
	tables, _ := newTables()
	for _, name := range kernels {
		var says, ratios []string
		for _, table := range []*harness.Table{tables.data, tables.msgs, tables.written} {
			row := &harness.Row{Name: name}
			row.Values = []float64{5}
			fields := strings.Fields(table.Text(row))
			says, ratios = append(says, fields[1]), append(ratios, fields[3])
		}
		if got := strings.Join(says, " "); got != want[name] {
			t.Errorf("%s: the paper has %s, want %s", name, got, want[name])
		}
		if got := strings.Join(ratios, " "); name == "EP" && got != "- 1.25 0.10" {
			t.Errorf("EP: ratios are %s", got)
		}
	}
}
