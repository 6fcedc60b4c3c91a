package barrier_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// unplugged is a link whose interface has no carrier.
type unplugged struct{ transport.Link }

func (unplugged) HasCarrier() bool { return false }

// Where a member is silent, and this node's cable is out, the error says so.
func TestNodeDownError_NoCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap:     func(_ mcd.NodeID, _ int, l transport.Link) transport.Link { return unplugged{l} },
		})
		s, err := barrier.Open(eps[0], barrier.Config{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Group(barrier.GroupConfig{PeerTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = g.Barrier(t.Context())
		var down *barrier.NodeDownError
		if !errors.As(err, &down) || len(down.LinkErrs) != 1 || !errors.Is(down.LinkErrs[0], transport.ErrNoCarrier) ||
			!strings.Contains(err.Error(), "node 1: silent for more than 1s; ") || !strings.Contains(err.Error(), "no carrier") {
			t.Errorf("%v", err)
		}
	})
}
