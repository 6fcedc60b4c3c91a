package bench

import (
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// A file that node 0 could not write is told before there are processes, which would wait for it.
func TestTuner_ChecksTheFileAtOnce(t *testing.T) {
	tune := &tuner{rounds: 1, out: filepath.Join(t.TempDir(), "none", "x")}
	tune.cluster.Nodes, tune.cluster.Node = 2, launch.NoNode
	if err := tune.prepare(nil); err == nil {
		t.Error("no error")
	}
	tune.cluster.Node = 0
	if err := tune.prepare(nil); err == nil {
		t.Error("no error where this is node 0 of several machines")
	}
	tune.cluster.Node = 1 // which writes nothing
	if err := tune.prepare(nil); err != nil {
		t.Error(err)
	}
}
