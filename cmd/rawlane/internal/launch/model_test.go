package launch

import (
	"testing"
)

// The command's auto is what a group has that names no algorithm, wherever the nodes run and however
// many networks they have: what is measured is what a user gets.
func TestAuto_IsTheDefaultOfAGroup(t *testing.T) {
	for _, nics := range []int{1, 2} {
		c := &ClusterFlags{Kind: "ring", NICs: nics, ifname: "eth0"}
		if a := c.Algorithm("auto"); !a.IsZero() {
			t.Errorf("%d networks: %v, want none", nics, a)
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
