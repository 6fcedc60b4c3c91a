package ring

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// A ring's default size is bounded in slots and in bytes, whatever the MTU.
func TestDefaultSlots_AreBoundedInMemory(t *testing.T) {
	for mtu, want := range map[int]int{68: 1024, 1500: 1024, 9000: 1024, 16000: 1024, 16300: 512, 65535: 128} {
		if got := afpacket.NewRingLayout(mtu, 0).Slots; got != want {
			t.Errorf("MTU %d: %d slots, want %d", mtu, got, want)
		}
	}
	bed := testbed.ForTest(t, testbed.Config{MTU: 65535})
	a, _ := testbed.OpenPair(t, bed, func(name string) (*Link, error) { return Open(name, Config{}) })
	if n := len(a.socket.ring.memory); n > 16<<20 {
		t.Errorf("MTU 65535: %d bytes", n)
	}
}

// A program that reads a view after Close reads nothing of use, and goes on.
func TestClose_UnderAReadersViews(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a fault then fails this test alone
	bed := testbed.ForTest(t, testbed.Config{})
	open := func(node int) *Link {
		l, err := testbed.In(bed.Node(node), func() (*Link, error) { return Open("eth0", Config{}) })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a := open(0)
	defer a.Close()
	sum := 0
	for range 3 {
		b := open(1)
		frame := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte("a view")}
		if _, err := a.Send([]transport.Frame{frame}); err != nil {
			t.Fatal(err)
		}
		views := make([]transport.Frame, 1)
		for n := 0; n == 0; {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			n, _ = b.Poll(views)
		}
		if !bytes.HasPrefix(views[0].Payload, []byte("a view")) {
			t.Errorf("received %q", views[0].Payload)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range views[0].Payload {
			sum += int(c)
		}
	}
	if sum != 0 {
		t.Errorf("the ring of a closed link still has frames in it (sum %d)", sum)
	}
}

// A ring that is asked to be small has 64 KiB of slots all the same, as its documentation says.
func TestSlots_FillWhatTheKernelAllocates(t *testing.T) {
	for _, c := range []struct{ mtu, asked, want int }{
		{1500, 2, 32}, {1500, 33, 64}, {9000, 2, 4}, {9000, 5, 8}, {65535, 2, 2},
	} {
		if got := afpacket.NewRingLayout(c.mtu, c.asked).Slots; got != c.want {
			t.Errorf("MTU %d: %d slots for %d, want %d", c.mtu, got, c.asked, c.want)
		}
	}
}

// A NIC is not asked for stamps that a ring cannot tell.
func TestStampFrames_LeavesTheNICAlone(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	a, _ := testbed.OpenPair(t, bed, func(name string) (*Link, error) { return Open(name, Config{}) })
	if nic := afpacket.StampingNIC(&a.attachment); nic != 0 {
		t.Errorf("interface %d is asked", nic)
	}
}
