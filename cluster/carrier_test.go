package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// unplugged is a link whose interface has no carrier.
type unplugged struct{ transport.Link }

func (unplugged) HasCarrier() bool { return false }

// Where nodes are missing, and this node's cable is out, the error says so.
func TestJoin_NoCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap:     func(_ mcd.NodeID, _ int, l transport.Link) transport.Link { return unplugged{l} },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := cluster.Join(ctx, eps[0], cluster.Config{Nodes: 2})
		if !errors.Is(err, cluster.ErrIncomplete) || !errors.Is(err, transport.ErrNoCarrier) ||
			!strings.HasSuffix(err.Error(), ": no carrier (plug the cable in, or set the other end up)") {
			t.Errorf("%v", err)
		}
	})
}
