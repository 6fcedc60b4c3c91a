package afpacket_test

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/xdp"
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

// kind is a link that embeds an Attachment.
type kind struct {
	name  string
	alone bool // an interface has one such link
	open  func(ifname string, s settings) (transport.Link, error)
}

// kinds are the links. What they all promise is tested here once.
var kinds = []kind{
	{"ring", false, func(ifname string, s settings) (transport.Link, error) {
		cfg := ring.Config{EtherType: s.etherType, Promiscuous: s.promiscuous, NoTrains: !s.trains}
		if s.small {
			cfg.Slots = 32
		}
		l, err := ring.Open(ifname, cfg)
		if err != nil {
			return nil, err // and not a nil *Link
		}
		return l, nil
	}},
	{"packet", false, func(ifname string, s settings) (transport.Link, error) {
		cfg := packet.Config{EtherType: s.etherType, Promiscuous: s.promiscuous, NoTrains: !s.trains}
		if s.small {
			cfg.ReceiveBuffer = 1 << 15
		}
		l, err := packet.Open(ifname, cfg)
		if err != nil {
			return nil, err
		}
		return l, nil
	}},
	{"xdp", true, func(ifname string, s settings) (transport.Link, error) {
		cfg := xdp.Config{EtherType: s.etherType, Promiscuous: s.promiscuous}
		if s.small {
			cfg.Slots = 32
		}
		l, err := xdp.Open(ifname, cfg)
		if err != nil {
			return nil, err
		}
		return l, nil
	}},
}

// need skips the test of a link that cannot be had here.
func (k kind) need(t *testing.T) {
	if k.name == "xdp" {
		testbed.NeedXDP(t, func(name string) error { _, err := xdp.Probe(name); return err })
	}
}

// newBed makes a pair of namespaces, for as long as the test.
func newBed(t *testing.T) *testbed.Bed { return testbed.ForTest(t, testbed.Config{}) }

// eachLink runs a test for all kinds of link, each on a pair of namespaces of its own.
func eachLink(t *testing.T, test func(t *testing.T, bed *testbed.Bed, open func(node int, s settings) transport.Link)) {
	eachOf(t, func(kind) bool { return true }, test)
}

// eachShared runs a test for the kinds of which an interface may have several.
func eachShared(t *testing.T, test func(t *testing.T, bed *testbed.Bed, open func(node int, s settings) transport.Link)) {
	eachOf(t, func(k kind) bool { return !k.alone }, test)
}

func eachOf(
	t *testing.T, wanted func(kind) bool,
	test func(t *testing.T, bed *testbed.Bed, open func(node int, s settings) transport.Link),
) {
	for _, d := range kinds {
		if !wanted(d) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			d.need(t)
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
