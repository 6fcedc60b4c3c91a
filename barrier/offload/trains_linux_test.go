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

// besideTrains is a cluster whose members send the Center trains, too. They have their arrivals behind
// a train's headers where its NIC does not keep the order of both, as with several queues.
func besideTrains(t *testing.T) (*testbed.Bed, *cluster) {
	t.Helper()
	needUnits(t)
	const size = 4
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
	return bed, c
}

// The unit counts arrivals behind a train's headers as well.
func TestUnit_CountsBesideTrains(t *testing.T) {
	const n = 200
	bed, c := besideTrains(t)
	all := c.groups(t, barrier.GroupConfig{})
	rounds(t, all, 1, barrier.Options{})
	before := c.eps[0].LinkCounters(0).RxFrames
	rounds(t, all, n, barrier.Options{})
	frames := uint64(n * (bed.Nodes() - 1))
	if got := c.eps[0].LinkCounters(0).RxFrames - before; got > frames/4 { // nacks of a busy machine
		t.Errorf("%d of %d frames reached the Center's process", got, frames)
	}
}

// A release in place of an arrival behind a train's headers reaches the members as it is: the kernel
// has left the sum of UDP of members on its own host to the NIC, and writes it, two bytes, before it
// sends the release by one that does not sum.
func TestUnit_ReleasesAreNotSummed(t *testing.T) {
	bed, c := besideTrains(t)
	for k := 1; k < bed.Nodes(); k++ {
		if err := bed.SumBeforePort(k, 0); err != nil {
			t.Fatal(err)
		}
	}
	all := c.groups(t, barrier.GroupConfig{})
	rounds(t, all, 50, barrier.Options{})
	for k, ep := range c.eps {
		if n := ep.Counters().DropChecksum; n > 0 {
			t.Errorf("node %d: %d frames with a wrong checksum", k, n)
		}
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
