package xdp

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Once a link is closed its descriptor is not used any more: the number may be another file's.
func TestControl_OfAClosedLink(t *testing.T) {
	_, a, _ := ends(t)
	used := 0
	use := func(int) error { used++; return nil }
	if err := a.door.Control(use); err != nil || used != 1 {
		t.Errorf("open: %v, used %d times", err, used)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.door.Control(use); !errors.Is(err, transport.ErrClosed) || used != 1 {
		t.Errorf("closed: %v, used %d times; want ErrClosed, and not used", err, used)
	}
}
