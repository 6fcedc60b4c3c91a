package afxdp

import (
	"net"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// A NIC says what it is asked however much of its stack the caller has used: where that grows within
// package ethtool, the kernel's answer is lost.
func TestNIC_Answers(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	n := new(nic)
	if err := n.open(lo.Index, lo.Name); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	for depth := range 200 {
		done := make(chan error)
		go testbed.Deeply(depth, func() { done <- n.change(map[string]bool{stripping[0]: false}) })
		if err := <-done; err != nil && strings.Contains(err.Error(), "unsupported feature") {
			t.Errorf("%d frames: %v", depth, err)
		}
		go testbed.Deeply(depth, func() {
			all, err := n.features()
			if len(all) == 0 {
				t.Errorf("%d frames: no features, %v", depth, err)
			}
			done <- err
		})
		<-done
		go testbed.Deeply(depth, func() {
			if !n.hasCarrier() {
				t.Errorf("%d frames: the loopback has no carrier", depth)
			}
			done <- nil
		})
		<-done
	}
}
