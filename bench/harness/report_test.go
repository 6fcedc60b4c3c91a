//go:build linux

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A limit that is missed is said, and listed for the exit status, also by the worst of results: none
// at all. A row that was left out is not.
func TestReport_LimitsThatAreNotMet(t *testing.T) {
	r := Report{Targets: []Target{
		{What: "at most, kept", Got: 1, Limit: 1.5},
		{What: "at most, just kept", Got: 1.5, Limit: 1.5},
		{What: "at most, missed", Got: 1.6, Limit: 1.5},
		{What: "at least, kept", Got: 2, Limit: 1.5, AtLeast: true},
		{What: "at least, missed", Got: 1.4, Limit: 1.5, AtLeast: true},
		{What: "at most, none", Got: 0, Limit: 1.5},
		{What: "at least, none", Got: 0, Limit: 1.5, AtLeast: true},
		{What: "at least, of none", Got: Over(2, 0), Limit: 1.5, AtLeast: true},
		{What: "at most, of none", Got: Over(2, 0), Limit: 1.5},
		{What: "left out", Got: (&Row{Values: []float64{1}}).Over(nil), Limit: 1.5, AtLeast: true},
		{What: "left out, too", Got: (*Row)(nil).Median(), Limit: 1.5},
	}}
	if got := fmt.Sprint(r.notMet()); got != "[at most, missed at least, missed at least, none at least, of none at most, of none]" {
		t.Errorf("not met: %s", got)
	}
	var out strings.Builder
	r.print(&out)
	if n := strings.Count(out.String(), "NOT met"); n != 5 || strings.Contains(out.String(), "left out") {
		t.Errorf("printed\n%s", out.String())
	}
}

// A verdict does not contradict its numbers: where they would look alike, they have more digits.
func TestReport_VerdictOfWhatIsNearlyTheLimit(t *testing.T) {
	r := Report{Targets: []Target{
		{What: "a", Got: 1.1004, Limit: 1.1}, {What: "b", Got: 1.0999999, Limit: 1.1}, {What: "c", Got: 1.1, Limit: 1.1},
	}}
	var out strings.Builder
	r.print(&out)
	want := "\na  NOT met  (1.1004, limit 1.1000)\nb  met      (1.0999999, limit 1.1000000)\nc  met      (1.10, limit 1.10)\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// Ratios are of medians, and so is the second number, also where the round of the median has another one.
func TestRow(t *testing.T) {
	var rows Rows
	for _, v := range [][2]float64{{5, 50}, {1, 10}, {3, 300}, {2, 20}} {
		rows.Add("a", v[0], v[1])
	}
	rows.Add("b", 5)
	a := rows.Find("a")
	if a.Median() != 2.5 || a.Min() != 1 || a.Max() != 5 || a.Second() != 35 || a.Over(rows.Find("b")) != 0.5 || !math.IsNaN(a.Over(rows.Find("c"))) {
		t.Errorf("median %v, min %v, max %v, second %v", a.Median(), a.Min(), a.Max(), a.Second())
	}
}

// A row without a result, such as of messages that did not arrive, leaves the others' lines as they
// are: a ratio to it is infinite, which JSON does not have.
func TestTable_RatioToNothing(t *testing.T) {
	tab := NewTable("", "us", 0, 1)
	tab.AddRatio("/ C", "ratio", "C")
	tab.Add("C", 0)
	tab.Add("ours", 2)
	for i, want := range []string{`"ratio":0,`, `"us":2`} {
		line, err := json.Marshal(tab.line(tab.Rows[i]))
		if err != nil || !strings.Contains(string(line), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// Results that cannot be kept are an error, also where all limits are met.
func TestFinish_ResultsThatAreNotKept(t *testing.T) {
	disk := errors.New("no space")
	r := Report{Save: func() error { return disk }}
	if err := (&Bench{limits: true}).finish(&r, true); !errors.Is(err, disk) {
		t.Errorf("%v, want %v", err, disk)
	}
	r = Report{Save: func() error { return nil }, Targets: []Target{{What: "a limit", Got: 2, Limit: 1}}}
	if err := (&Bench{limits: true}).finish(&r, true); !errors.Is(err, ErrNotMet) {
		t.Errorf("%v, want %v", err, ErrNotMet)
	}
}

// Results are kept also where they cannot be printed, as on a full disk, and both are told.
func TestFinish_ResultsThatAreNotPrinted(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	out := os.Stdout
	os.Stdout = full
	defer func() { os.Stdout = out; _ = full.Close() }()
	disk := errors.New("no space")
	for _, asJSON := range []bool{false, true} {
		table := NewTable("Some", "us", 0, 1)
		table.Add("ours", 1)
		saved := 0
		r := Report{Tables: []*Table{table}, Save: func() error { saved++; return disk }}
		err := (&Bench{}).finish(&r, asJSON)
		if !errors.Is(err, unix.ENOSPC) || !errors.Is(err, disk) || saved != 1 {
			t.Errorf("as JSON %v: %v, saved %d times", asJSON, err, saved)
		}
	}
}
