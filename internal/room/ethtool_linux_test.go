package room_test

import (
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
)

// Answers come into the caller's memory also where the collector moves stacks all the time.
func TestEthtool_BesideTheCollector(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	err := bed.Node(0).Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "pair0", 3, 3
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "pair1"}); err != nil {
			return err
		}
		e, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		for i := range 30_000 { // one in 30,000 was lost
			if c, err := e.GetChannels("pair0"); err != nil || c.RxCount != 3 {
				t.Errorf("call %d: %+v, %v; want 3 receive queues", i, c, err)
				return nil
			}
		}
		return nil
	})
	close(done)
	<-ended
	if err != nil {
		t.Error(err)
	}
}
