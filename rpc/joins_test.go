package rpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// A node that was called before the table had it, and joins, is probed as others are: its death is
// not missed.
func TestCall_ANodeThatJoins(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		serving := make(chan bool)
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			serving <- true
			<-ctx.Done()
			return nil, nil
		})
		nodes := c.eps[0].Nodes()
		must(t, c.eps[0].SetNodes(nodes[:1]))
		if _, err := c.nodes[0].Call(limit(t), 1, "wait", nil); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Fatal(err)
		}
		must(t, c.eps[0].SetNodes(nodes))
		called := make(chan error)
		go func() { _, err := c.nodes[0].Call(limit(t), 1, "wait", nil); called <- err }()
		<-serving
		time.Sleep(10 * memfifo.DefaultPeerTimeout) // what the call has sent was confirmed long ago
		c.faults[1].Cut(true)
		if err := <-called; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
	})
}
