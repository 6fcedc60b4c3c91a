package afpacket_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// patience is how long what must happen may take.
const patience = 20 * time.Second

// settings are those that both kinds of link have.
type settings struct {
	etherType   transport.EtherType
	promiscuous bool
	small       bool // room for few received frames
	trains      bool
}

// kinds are the two links over AF_PACKET. What both promise is tested here once.
var kinds = []struct {
	name string
	open func(ifname string, s settings) (transport.Link, error)
}{
	{"ring", func(ifname string, s settings) (transport.Link, error) {
		cfg := ring.Config{EtherType: s.etherType, Promiscuous: s.promiscuous, Trains: s.trains}
		if s.small {
			cfg.Slots = 32
		}
		l, err := ring.Open(ifname, cfg)
		if err != nil {
			return nil, err // and not a nil *Link
		}
		return l, nil
	}},
	{"packet", func(ifname string, s settings) (transport.Link, error) {
		cfg := packet.Config{EtherType: s.etherType, Promiscuous: s.promiscuous, Trains: s.trains}
		if s.small {
			cfg.ReceiveBuffer = 1 << 15
		}
		l, err := packet.Open(ifname, cfg)
		if err != nil {
			return nil, err
		}
		return l, nil
	}},
}

// newBed makes a pair of namespaces, for as long as the test.
func newBed(t *testing.T) *testbed.Bed { return testbed.ForTest(t, testbed.Config{}) }

// eachLink runs a test for both kinds of link, each on a pair of namespaces of its own.
func eachLink(t *testing.T, test func(t *testing.T, bed *testbed.Bed, open func(node int, s settings) transport.Link)) {
	for _, d := range kinds {
		t.Run(d.name, func(t *testing.T) {
			bed := newBed(t)
			test(t, bed, func(node int, s settings) transport.Link {
				t.Helper()
				l, err := testbed.In(bed.Node(node), func() (transport.Link, error) { return d.open("eth0", s) })
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				return l
			})
		})
	}
}

// receive polls and waits until n frames came, and returns them with payloads copied.
func receive(t *testing.T, l transport.Link, n int) (got []transport.Frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	frames := make([]transport.Frame, 16)
	for len(got) < n {
		k, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:k] {
			f.Payload = bytes.Clone(f.Payload)
			got = append(got, f)
		}
		if k == 0 {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("after %d frames of %d: %v", len(got), n, err)
			}
		}
	}
	return got
}

func send(t *testing.T, l transport.Link, frames ...transport.Frame) {
	t.Helper()
	if n, err := l.Send(frames); err != nil {
		t.Fatalf("sent %d: %v", n, err)
	}
}

// raw sends bytes as they are from a node's interface.
func raw(t *testing.T, bed *testbed.Bed, node int, frame []byte) {
	t.Helper()
	err := bed.Node(node).Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}
