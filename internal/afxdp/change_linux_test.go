package afxdp

import (
	"strings"
	"testing"

	"github.com/safchain/ethtool"
)

// deeply calls f on a stack of n frames.
func deeply(n int, f func()) {
	var frame [64]byte
	frame[n%len(frame)] = 1
	if n > 0 {
		deeply(n-1, f)
	} else {
		f()
	}
	_ = frame
}

// A NIC says what it is asked however much of its stack the caller has used: where that grows within
// package ethtool, the kernel's answer is lost.
func TestNIC_Answers(t *testing.T) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	n := &nic{tool: tool, ifname: "lo"}
	for depth := range 200 {
		done := make(chan error)
		go deeply(depth, func() { done <- n.change(map[string]bool{stripping[0]: false}) })
		if err := <-done; err != nil && strings.Contains(err.Error(), "unsupported feature") {
			t.Errorf("%d frames: %v", depth, err)
		}
		go deeply(depth, func() {
			all, err := n.features()
			if len(all) == 0 {
				t.Errorf("%d frames: no features, %v", depth, err)
			}
			done <- err
		})
		<-done
		go deeply(depth, func() {
			if !n.hasCarrier() {
				t.Errorf("%d frames: the loopback has no carrier", depth)
			}
			done <- nil
		})
		<-done
	}
}
