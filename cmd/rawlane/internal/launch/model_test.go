package launch

import (
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// What Auto chooses for processes on two cores is what was measured to be the quickest: see
// bench/README.md.
func TestAutoChoosesWhatIsQuickestHere(t *testing.T) {
	for _, kind := range []string{"ring", "fabric"} {
		for nodes, want := range map[int]string{2: "shuffle", 4: "concurrent", 8: "concurrent", 16: "concurrent", 32: "concurrent"} {
			p := &ClusterFlags{Kind: kind, NICs: 1}
			t.Setenv(cli.EnvLocal, "2")
			p.ifname = "eth0" // as a process that was started beside others
			if got := p.Algorithm("auto").For(nodes).String(); got != want {
				t.Errorf("%s, %d nodes: %s, want %s", kind, nodes, got, want)
			}
		}
	}
}
