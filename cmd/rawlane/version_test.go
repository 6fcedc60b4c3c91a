package main

import (
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		out, _, status := command(t, how)
		if status != exitDone || !strings.HasPrefix(out, "rawlane ") || !strings.HasSuffix(out, "wire format 1\n") {
			t.Errorf("%s: status %d: %s", how, status, out)
		}
	}
}
