package linktest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// faultEnv names the fault of the link that TestFaultyWire runs the suite on.
const faultEnv = "RAWLANE_LINKTEST_FAULT"

// TestFaultyWire is run by TestSuite_NoticesEachFault in a process of its own, where it has to
// fail.
func TestFaultyWire(t *testing.T) {
	fault := os.Getenv(faultEnv)
	if fault == "" {
		return // without a fault this is TestWire
	}
	patience = 500 * time.Millisecond
	TestLink(t, func(*testing.T) (a, b transport.Link) { return newWirePair(fault) })
}

// A suite is worth what it notices: each broken promise is reported by the subtest named for it.
func TestSuite_NoticesEachFault(t *testing.T) {
	for _, c := range []struct{ fault, by string }{
		{"hears itself", "own frames are not seen"},
		{"promiscuous", "unicast for another is not seen"},
		{"promiscuous", "multicast not joined is not seen"},
		{"counts no joins", "joins are counted"},
		{"loses priority tags", "priority tag is not untagged"},
		{"loses DEI", "tags arrive as sent"},
		{"takes all", "one byte more is refused"},
		{"takes all", "one byte more is refused inside a batch"},
		{"takes all", "bad tags are refused"},
		{"takes all", "refused frames are counted"},
		{"dirty padding", "short payloads are padded with zeros at most"},
		{"last in, first out", "a batch keeps its order"},
		{"drops the rest", "poll fills a short slice"},
		{"borrows payloads", "sent payloads are the caller's again"},
		{"overruns headroom", "headroom changes nothing"},
		{"trusts headroom", "headroom elsewhere is left alone"},
		{"hands out headroom", "headroom changes nothing"},
		{"hands out answers", "an answer arrives as other frames do"},
		{"leaves the origin", "a batch keeps its order"},
		{"edge-triggered", "wait sees what a poll left"},
		{"sleeps through Close", "wait ends by close"},
		{"ignores masking", "masked wake-ups leave the waiter asleep"},
		{"sleeps on unmasked", "unmasking wakes the waiter"},
		{"allocates", "send and poll do not allocate"},
	} {
		t.Run(c.fault+"/"+c.by, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(c.by, " ", "_")
			cmd := exec.Command(os.Args[0], "-test.run=^TestFaultyWire$/^"+name+"$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), faultEnv+"="+c.fault)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestFaultyWire/"+name) {
				t.Errorf("a link that %s passed %q (%v):\n%s", c.fault, c.by, err, out)
			}
		})
	}
}
