//go:build linux

package harness

import (
	"fmt"
	"strings"
	"testing"
)

// A limit that is missed is said, and listed for the exit status; a row that was left out is not.
func TestReport_LimitsThatAreNotMet(t *testing.T) {
	r := Report{Targets: []Target{
		{What: "at most, kept", Got: 1, Limit: 1.5},
		{What: "at most, just kept", Got: 1.5, Limit: 1.5},
		{What: "at most, missed", Got: 1.6, Limit: 1.5},
		{What: "at least, kept", Got: 2, Limit: 1.5, AtLeast: true},
		{What: "at least, missed", Got: 1.4, Limit: 1.5, AtLeast: true},
		{What: "left out", Got: 0, Limit: 1.5, AtLeast: true},
	}}
	if got := fmt.Sprint(r.notMet()); got != "[at most, missed at least, missed]" {
		t.Errorf("not met: %s", got)
	}
	var out strings.Builder
	r.print(&out)
	if n := strings.Count(out.String(), "NOT met"); n != 2 || strings.Contains(out.String(), "left out") {
		t.Errorf("printed\n%s", out.String())
	}
}

// Ratios are of medians, and the second number is of the round nearest to the median.
func TestRow(t *testing.T) {
	var rows Rows
	for _, v := range [][2]float64{{5, 50}, {1, 10}, {3, 30}, {2, 20}} {
		rows.Add("a", v[0], v[1])
	}
	rows.Add("b", 5)
	a := rows.Find("a")
	if a.Median() != 2.5 || a.Min() != 1 || a.Max() != 5 || a.Second() != 30 || a.Over(rows.Find("b")) != 0.5 || a.Over(rows.Find("c")) != 0 {
		t.Errorf("median %v, min %v, max %v, second %v", a.Median(), a.Min(), a.Max(), a.Second())
	}
}
