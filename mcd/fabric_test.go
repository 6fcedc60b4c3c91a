package mcd_test

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// switched makes n links on one in-memory switch.
func switched(t testing.TB, n int) []transport.Link {
	t.Helper()
	links, err := fabric.Links(n)
	if err != nil {
		t.Fatal(err)
	}
	var out []transport.Link
	for _, l := range links {
		out = append(out, l)
	}
	return out
}
