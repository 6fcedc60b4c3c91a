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

// oneSwitch makes an in-memory switch, and returns what attaches a link with an address to it.
func oneSwitch(t testing.TB) (attach func(transport.MAC) transport.Link) {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sw := f.AddSwitch("")
	return func(m transport.MAC) transport.Link {
		l, err := f.Attach(sw, fabric.Station{MAC: m})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}
