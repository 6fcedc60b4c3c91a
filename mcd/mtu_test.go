package mcd_test

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// narrow is a link of a small MTU.
type narrow struct {
	transport.Link
	mtu int
}

func (n *narrow) MTU() int { return n.mtu }

// A link has to have room for a message of one byte at least.
func TestOpen_SmallestMTU(t *testing.T) {
	l := switched(t, 1)[0]
	defer l.Close()
	for _, mtu := range []int{0, mcd.HeaderLen - 1, mcd.HeaderLen} {
		if _, err := mcd.Open(mcd.Config{}, &narrow{l, mtu}); err == nil || !strings.Contains(err.Error(), "leaves no room") {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
	e, err := mcd.Open(mcd.Config{}, &narrow{l, mcd.HeaderLen + 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := e.MaxPayload(); n != 1 {
		t.Errorf("messages of %d bytes", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
