package demo

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

func TestDemo(t *testing.T) {
	out, errs, status := command(t, "demo")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	for _, want := range []string{`1:7 answered "hello, raw Ethernet"`, `node 2, a member of group 5, received "members only"`,
		"node 2 received \"to all\" from 3:1", "drop_no_port 1", "VID 1 PCP 5, by way of top 1", "VID 2 PCP 5, by way of top 2",
		`wrote "put here" into node 1's memory at 16`, `"node 1, id 1: access refused: out of range"; nothing was written`, "100 times each: it is 300",
		"into 128 bytes of node 1, which popped", "\n1400 ", "\nDone."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
