package start

import (
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// A process of a job that begins anew has its address again on a link over shared memory, and is met
// by the others; one that runs already is not opened twice.
func TestOpenLink_OfTheSameNode(t *testing.T) {
	dir, err := os.MkdirTemp("", "start-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("RAWLANE_SHM_DIR", dir)
	job := Job{Launcher: RawlaneRun, Node: 1, Size: 2}
	env := environ{EnvLink: "shm", EnvSegment: "anew"}.get
	var macs []transport.MAC
	for range 2 {
		l, err := job.openLink(t.Context(), 7, env)
		if err != nil {
			t.Fatal(err)
		}
		macs = append(macs, l.MAC())
		if _, err := job.openLink(t.Context(), 7, env); err == nil || !strings.Contains(err.Error(), "node 1 of cluster 7 runs on this host already") {
			t.Errorf("a second one: %v", err)
		}
		_ = l.Close()
	}
	if macs[0] != macs[1] {
		t.Errorf("it begins anew at %v, and was at %v", macs[1], macs[0])
	}
}
