package offload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fault"
)

// Members that send the Center trains, too, have their arrivals behind a train's headers where its NIC
// does not keep the order of both, as with several queues. The unit counts these as well.
func TestUnit_CountsBesideTrains(t *testing.T) {
	needUnits(t)
	const size, n = 4, 200
	bed := testbed.ForTest(t, testbed.Config{Nodes: size, Bridge: true})
	err := bed.Node(0).Do(func() error {
		tool, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		return tool.Change(testbed.Interface(0), map[string]bool{"rx-udp-gro-forwarding": true})
	})
	if err != nil {
		t.Fatal(err)
	}
	c := openIn(t, bed, size, fault.Config{})
	if _, err := c.eps[0].OpenPort(9, mcd.PortOptions{Receive: func([]mcd.Message, bool) {}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for k := 1; k < size; k++ {
		if err := sendTrain(ctx, c.eps[k], c.links[k].Trains); err != nil {
			t.Fatalf("node %d: %v", k, err)
		}
	}
	all := c.groups(t, barrier.GroupConfig{})
	rounds(t, all, 1, barrier.Options{})
	before := c.eps[0].LinkCounters(0).RxFrames
	rounds(t, all, n, barrier.Options{})
	const frames = n * (size - 1)
	if got := c.eps[0].LinkCounters(0).RxFrames - before; got > frames/4 { // nacks of a busy machine
		t.Errorf("%d of %d frames reached the Center's process", got, frames)
	}
}

// sendTrain sends messages to node 0, some at a time, until they go as a train.
func sendTrain(ctx context.Context, ep *mcd.Endpoint, trains func() (sent, received uint64)) error {
	p, err := ep.OpenPort(9, mcd.PortOptions{})
	if err != nil {
		return err
	}
	var four [4]*mcd.SendDesc
	for i := range four {
		four[i] = &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 0, Port: 9}), Payload: make([]byte, 64)}
	}
	for sent := uint64(0); sent == 0; sent, _ = trains() {
		if err := p.PostSend(four[:]...); err != nil {
			return err
		}
		for _, d := range four {
			if err := d.Wait(ctx); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return errors.New("no train was sent")
		}
	}
	return nil
}
