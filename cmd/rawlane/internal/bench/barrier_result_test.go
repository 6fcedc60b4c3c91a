package bench

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// A line of auto says whether the table has chosen.
func TestBarrierResult_ChoseBy(t *testing.T) {
	here := schedule.OneHost(4, 2, schedule.MemoryCosts)
	for rows, want := range map[string][2]string{
		"4 star - " + here.String(): {byTable, "  by --table\n"},
		"4 star -":                  {byTable, "  by --table, for ranks anywhere\n"},
		"5 star -":                  {byModel, "  by the model: --table has no row of 4 ranks, 1 host: 4 ranks on 2 cores\n"},
	} {
		table, err := schedule.ParseTable("x", strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		r := &barrierResult{}
		if r.choseBy(table, here, 4); r.ChosenBy != want[0] || !strings.HasSuffix(r.line(), want[1]) {
			t.Errorf("%s: by %q, %q", rows, r.ChosenBy, r.line())
		}
	}
}

// fill takes least and greatest from all nodes, as the percentiles.
func TestBarrierResult_OneDistribution(t *testing.T) {
	var r barrierResult
	r.fill([][]uint32{{1000, 2000, 3000}, {4000, 5000, 90_001}})
	if r.MinUS != 1 || r.MaxUS != 90.001 || r.P99US != 90.001 || r.MeanMinUS != 2.5 || r.MeanMaxUS != (3+90.001)/2 {
		t.Errorf("min %v, p99 %v, max %v; averages %v, %v", r.MinUS, r.P99US, r.MaxUS, r.MeanMinUS, r.MeanMaxUS)
	}
}
