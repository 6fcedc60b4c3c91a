package memfifo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
)

// unplugged is a link whose interface has no carrier.
type unplugged struct{ transport.Link }

func (unplugged) HasCarrier() bool { return false }

// Where a peer is silent, and this node's cable is out, the error says so.
func TestPeerDownError_NoCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap:     func(_ mcd.NodeID, _ int, l transport.Link) transport.Link { return unplugged{l} },
		})
		d, err := memfifo.Open(eps[0], memfifo.Config{PeerTimeout: time.Second})
		must(t, err)
		err = d.Remote(memfifo.Key{Node: 1}).Get(t.Context(), 0, make([]byte, 1))
		var down *memfifo.PeerDownError
		if !errors.As(err, &down) || !errors.Is(down.NotSent, transport.ErrNoCarrier) {
			t.Errorf("%v", err)
		}
		err = &memfifo.SendersDownError{Nodes: []*memfifo.PeerDownError{down}}
		if want := "node 1 (silent, as frames to it cannot be sent: "; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		_ = d.Close()
	})
}
