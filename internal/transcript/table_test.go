package transcript

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Columns are where the head line has them, also if a cell fills its own.
func TestTableRows(t *testing.T) {
	source := "package x\n//\tno table\n//\n" +
		"//\tstate  event      next  sends\n" +
		"//\tIdle   call       Open  -\n" +
		"//\tany    long event,Idle  all\n" +
		"//\n// More.\n//\tIdle   not a row  Open  -\n"
	if got, want := tableRows(source), []string{"Idle: call", "any: long event,"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := tableRows("//\tIdle   call       Open  -\n"); got != nil {
		t.Errorf("without a head line %q", got)
	}
}

// Each deadline is met once, none after the end, and one that has passed at once.
func TestPass(t *testing.T) {
	start := monotime.At(time.Second)
	due := []monotime.Time{start.Add(-1), start.Add(3), start.Add(10), start.Add(11)}
	var met []monotime.Time
	end := Pass(start, 10, func() (monotime.Time, bool) {
		if len(met) == len(due) {
			return monotime.Time{}, false
		}
		return due[len(met)], true
	}, func(now monotime.Time) { met = append(met, now) })
	if want := []monotime.Time{start, start.Add(3), start.Add(10)}; !slices.Equal(met, want) || end != start.Add(10) {
		t.Errorf("advanced at %v, want %v; it ends at %v", met, want, end)
	}
	if end := Pass(start, 5, func() (monotime.Time, bool) { return start, false }, nil); end != start.Add(5) {
		t.Errorf("without a deadline it ends at %v", end)
	}
}
