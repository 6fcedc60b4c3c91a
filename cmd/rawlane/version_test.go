package main

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		out, _, status := Command(t, how)
		if status != cli.ExitDone || !strings.HasPrefix(out, "rawlane ") || !strings.HasSuffix(out, "wire format 1\n") {
			t.Errorf("%s: status %d: %s", how, status, out)
		}
	}
}
