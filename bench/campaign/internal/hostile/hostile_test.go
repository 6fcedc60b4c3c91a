//go:build linux

package hostile

import (
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
