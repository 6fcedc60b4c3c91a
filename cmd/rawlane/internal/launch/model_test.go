package launch

import (
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// The command's auto is what a group has that names no algorithm, wherever the nodes run: what is
// measured is what a user gets.
func TestAuto_IsTheDefaultOfAGroup(t *testing.T) {
	for _, local := range []string{"", "2"} {
		t.Setenv(cli.EnvLocal, local)
		for _, kind := range []string{"ring", "packet", "fabric"} {
			for _, nodes := range []int{2, 4, 8, 16, 32, 100} {
				c := &ClusterFlags{Kind: kind, NICs: 1, ifname: "eth0"}
				if got, want := c.Algorithm("auto").For(nodes).String(), schedule.Auto().For(nodes).String(); got != want {
					t.Errorf("%s, %d nodes, local %q: %s, want %s", kind, nodes, local, got, want)
				}
			}
		}
	}
}

// What auto:2 chooses for processes on two cores is what was measured to be the quickest: see
// bench/README.md.
func TestAutoShared_ChoosesWhatIsQuickestOnTwoCores(t *testing.T) {
	for nodes, want := range map[int]string{2: "shuffle", 4: "concurrent", 8: "concurrent", 16: "concurrent", 32: "concurrent"} {
		c := &ClusterFlags{Kind: "ring", NICs: 1}
		if got := c.Algorithm("auto:2").For(nodes).String(); got != want {
			t.Errorf("%d nodes: %s, want %s", nodes, got, want)
		}
	}
}
