package mcd_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// envPlace has this test binary say on which host it is.
const envPlace = "RAWLANE_MCD_PLACE"

// All processes of a host say that they are on the same one.
func TestHere_OneHostInEveryProcess(t *testing.T) {
	here := fmt.Sprintf("host %x\n", mcd.Here().Host)
	if os.Getenv(envPlace) != "" {
		fmt.Print(here)
		return
	}
	if _, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil {
		t.Skip(err) // then none is known to share a host
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envPlace+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), here) || strings.HasPrefix(here, "host 0") {
		t.Errorf("another process says %q, %v; want %q", out, err, here)
	}
}
