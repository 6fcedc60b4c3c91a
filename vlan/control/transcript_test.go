package control_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/traffic"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata")

// story runs a network, and writes down what happens.
type story struct {
	*model
	strings.Builder
	period int
}

// run lets periods pass.
func (s *story) run(periods int) {
	for range periods {
		s.period++
		s.model.run(period)
		decisions := s.decide()
		carried := 0.0
		for _, r := range s.rates {
			carried += r
		}
		hop, believed := s.control.Worst()
		fmt.Fprintf(s, "%3d  %-10v  carried %.1fG of %.1fG  worst link wanted %.2f, taken for %.2f (%s)\n",
			s.period, s.control.State(), carried/1e9, total(s.want)/1e9, s.worst(s.plan), believed, s.top.HopName(hop))
		for _, d := range decisions {
			fmt.Fprintf(s, "     %s: %v\n", d.Reason, d)
		}
	}
}

func total(t traffic.Matrix) (sum float64) {
	for _, f := range t {
		sum += float64(f.Rate)
	}
	return sum
}

// The exchange of CG on a fat tree with the table that it begins with (VFREC figures 4 and 5), and
// what the controller makes of it; then the program goes on to its next phase. Read it: it is what
// the controller's promises come to. After -rewrite, read the difference.
func TestVFREC_3_2_ControlPartsCG(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x4")
	macs := make([]transport.MAC, 16)
	for i := range macs {
		macs[i] = transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}
	}
	plan, err := plan.RoundRobin(macs, []transport.VID{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{model: newModel(top, plan, control.ControllerConfig{MaxChanges: 2})}
	s.WriteString("# CG on 16 nodes, all links 1G, at most 2 changes in a period\n")
	s.wants(vlantest.Pattern(t, "cg16", 16))
	s.run(9)
	s.WriteString("# another phase: each node sends to one by chance\n")
	s.wants(vlantest.Pattern(t, "random:2", 16))
	s.run(15)
	s.WriteString("# CG again, at once\n")
	s.wants(vlantest.Pattern(t, "cg16", 16))
	s.run(9)

	const file = "testdata/control_cg.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s.String() != string(want) {
		t.Errorf("it is now:\n%s\nand was:\n%s", s.String(), want)
	}
	if carried := total(vlantest.Pattern(t, "cg16", 16)); !strings.Contains(s.String(), fmt.Sprintf("carried %.1fG of %.1fG", carried/1e9, carried/1e9)) {
		t.Error("CG never gets what it wants")
	}
}
