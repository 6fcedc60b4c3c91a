//go:build linux

package hostile

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func TestRun(t *testing.T) {
	testbed.Need(t)
	for _, keys := range []bool{false, true} {
		o, err := Run(t.Context(), Config{Keys: keys, Frames: 5000, Seed: 1})
		if err != nil || len(o.Wrong) > 0 || keys && o.Accepted > 0 || !keys && o.Accepted == 0 {
			t.Errorf("keys %t: %+v, %v", keys, o, err)
		}
		t.Logf("keys %t: %+v", keys, o)
	}
}

// What a cluster without a key accepts is counted.
func TestRun_FindsWhatIsAccepted(t *testing.T) {
	testbed.Need(t)
	o, err := Run(t.Context(), Config{Strict: true, Frames: 5000, Seed: 1})
	if err != nil || o.Accepted == 0 || len(o.Wrong) == 0 || !strings.Contains(o.Wrong[0], "accepted") {
		t.Errorf("%+v, %v; want frames that were accepted", o, err)
	}
}

// An attack that cannot be prepared, here as nobody waits for it, leaves nothing open.
func TestRun_LeavesNothingOpen(t *testing.T) {
	testbed.Need(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var open [2]int // behind each of two attacks: the first one opens what the runtime keeps
	for i := range open {
		if _, err := Run(ctx, Config{Frames: 1, Seed: 1}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, want %v", err, context.Canceled)
		}
		open[i] = testbed.Descriptors(t)
	}
	if open[1] != open[0] {
		t.Errorf("%d descriptors are open behind the second attack, and %d behind the first", open[1], open[0])
	}
}
