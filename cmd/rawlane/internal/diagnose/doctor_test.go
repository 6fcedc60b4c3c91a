package diagnose

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

func TestDoctor(t *testing.T) {
	out, errs, status := command(t, "doctor", "--json", "--interface", "lo")
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); status != cli.ExitDone || errs != "" || err != nil {
		t.Fatalf("status %d: %s %v", status, errs, err)
	}
	if len(d.Checks) != 4 || !d.Checks[0].OK || len(d.Interfaces) != 1 || d.Interfaces[0].Name != "lo" {
		t.Errorf("%s", out)
	}
	for _, f := range append(d.Checks, d.Interfaces[0].Links...) {
		if !f.OK && f.Reason == "" {
			t.Errorf("%s: no reason", f.Name)
		}
	}
	if out, _, _ := command(t, "doctor", "--interface", "lo"); !strings.Contains(out, "yes  fabric links (in memory)") || !strings.Contains(out, "not an Ethernet interface") {
		t.Errorf("%s", out)
	}
}
