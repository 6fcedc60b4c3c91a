package afpacket_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// What a link changes on the interface is undone when it is closed.
func TestInterfaceIsLeftAsItWas(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		state := func() (s string) {
			err := bed.Node(0).Do(func() error {
				l, err := netlink.LinkByName("eth0")
				if err != nil {
					return err
				}
				// Netlink does not list link-layer groups; "ip maddr" reads this file too.
				groups, err := os.ReadFile("/proc/thread-self/net/dev_mcast")
				s = fmt.Sprintf("promiscuous %d, allmulti %d, groups\n%s", l.Attrs().Promisc, l.Attrs().Allmulti, groups)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := state()
		l := open(0, settings{promiscuous: true})
		promiscuous := state()
		if promiscuous == before {
			t.Fatalf("open, and still %s: nothing to see", before)
		}
		if err := transport.Join(l, transport.MAC{3, 0, 0, 0, 0, 1}); err != nil {
			t.Fatal(err)
		}
		if joined := state(); joined == promiscuous || !strings.Contains(joined, "030000000001") {
			t.Fatalf("joined, and %s", joined)
		}
		if err := transport.Leave(l, transport.MAC{3, 0, 0, 0, 0, 1}); err != nil {
			t.Fatal(err)
		}
		if left := state(); left != promiscuous {
			t.Errorf("%s before a group was joined, %s after it was left", promiscuous, left)
		}
		if err := transport.Join(l, transport.MAC{3, 0, 0, 0, 0, 2}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if after := state(); after != before {
			t.Errorf("%s before, %s after", before, after)
		}
	})
}

// Close may come at any time; calls in progress end with ErrClosed. The loops yield, so that Close
// meets many states within the test's time.
func TestCloseAtAnyTime(t *testing.T) {
	eachLink(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		for range 10 {
			a, b := open(0, settings{}), open(1, settings{})
			frame := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
			out, in := []transport.Frame{frame, frame}, make([]transport.Frame, 4)
			ended := make(chan error, 3)
			for _, call := range []func() error{
				func() error { _, err := a.Send(out); return err },
				func() error { _, err := b.Poll(in); return err },
				func() error { return b.Wait(context.Background()) },
			} {
				go func() {
					err := call()
					for ; err == nil || errors.Is(err, transport.ErrBusy); err = call() {
						runtime.Gosched()
					}
					ended <- err
				}()
			}
			for range 100 {
				runtime.Gosched()
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := <-ended; !errors.Is(err, transport.ErrClosed) {
					t.Errorf("%v", err)
				}
			}
		}
	})
}
