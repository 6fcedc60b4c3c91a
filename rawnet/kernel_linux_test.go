package rawnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
)

// between opens a Net at each end of two links, whose frames are authenticated if there is a key.
func between(t testing.TB, f fault.Config, keyFile string, a, b transport.Link) []*rawnet.Net {
	t.Helper()
	cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: 50 * time.Microsecond, KeyFile: keyFile}}
	if f.Loss > 0 {
		cfg.Wrap = func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			l, err := fault.New(inner, rand.New(rand.NewPCG(7, uint64(node))), f)
			must(t, err)
			return l
		}
	}
	var nets []*rawnet.Net
	for _, ep := range mcdtest.OpenLinks(t, cfg, []transport.Link{a}, []transport.Link{b}) {
		n, err := rawnet.Open(ep, rawnet.Config{})
		must(t, err)
		nets = append(nets, n)
	}
	t.Cleanup(func() {
		for _, n := range nets {
			_ = n.Close()
		}
	})
	return nets
}

// overUDP opens two links that know each other, on this host.
func overUDP(t testing.TB) (_, _ transport.Link) {
	t.Helper()
	a, err := udp.Open("127.0.0.1:0", udp.Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}})
	must(t, err)
	b, err := udp.Open("127.0.0.1:0", udp.Config{
		MAC: transport.MAC{2, 0, 0, 0, 0, 2}, Stations: []udp.Station{{Addr: a.Addr().String(), MAC: a.MAC()}},
	})
	must(t, err)
	must(t, a.AddStation(udp.Station{Addr: b.Addr().String(), MAC: b.MAC()}))
	return a, b
}

// newKeyFile writes a cluster's key.
func newKeyFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	must(t, keyring.New().WriteFile(file))
	return file
}

// segments counts the segments of this process.
var segments atomic.Int32

// overMemory opens two links of a segment that nobody else has.
func overMemory(t testing.TB) (_, _ transport.Link) {
	t.Helper()
	name := fmt.Sprintf("rawnet-%d-%d", os.Getpid(), segments.Add(1))
	a, err := shm.Open(name, shm.Config{})
	must(t, err)
	b, err := shm.Open(name, shm.Config{})
	must(t, err)
	return a, b
}

// onKernelLinks runs a test over the kernel's links between namespaces, over UDP, also with a key,
// and through shared memory.
func onKernelLinks(t *testing.T, do func(t *testing.T, open func(*testing.T, fault.Config) []*rawnet.Net)) {
	t.Helper()
	keyless := func(testing.TB) string { return "" }
	for name, how := range map[string]struct {
		pair    func(testing.TB) (a, b transport.Link)
		keyFile func(testing.TB) string
	}{
		"ring": {func(t testing.TB) (a, b transport.Link) {
			return testbed.OpenPair(t, testbed.ForTest(t, testbed.Config{}), func(ifname string) (*ring.Link, error) {
				return ring.Open(ifname, ring.Config{})
			})
		}, keyless},
		"packet": {func(t testing.TB) (a, b transport.Link) {
			return testbed.OpenPair(t, testbed.ForTest(t, testbed.Config{}), func(ifname string) (*packet.Link, error) {
				return packet.Open(ifname, packet.Config{})
			})
		}, keyless},
		"xdp": {func(t testing.TB) (a, b transport.Link) {
			testbed.NeedXDP(t, func(ifname string) error { _, err := xdp.Probe(ifname); return err })
			return testbed.OpenPair(t, testbed.ForTest(t, testbed.Config{}), func(ifname string) (*xdp.Link, error) {
				return xdp.Open(ifname, xdp.Config{})
			})
		}, keyless},
		"shm":        {overMemory, keyless},
		"udp":        {overUDP, keyless},
		"udp, a key": {overUDP, newKeyFile},
	} {
		t.Run(name, func(t *testing.T) {
			do(t, func(t *testing.T, f fault.Config) []*rawnet.Net {
				t.Helper()
				a, b := how.pair(t)
				return between(t, f, how.keyFile(t), a, b)
			})
		})
	}
}

// The test suite of golang.org/x/net on the kernel's links, also with loss, duplicates and
// reordering.
func TestKernel_NetTest(t *testing.T) {
	onKernelLinks(t, func(t *testing.T, open func(*testing.T, fault.Config) []*rawnet.Net) {
		for name, f := range map[string]fault.Config{"": {}, "fault": {Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}} {
			t.Run(name, func(t *testing.T) {
				nets := open(t, f)
				testConns(t, nets[0], nets[1])
			})
		}
	})
}

// Packets of all lengths go there and back, each whole and with its sender's address, whatever the
// network loses and doubles; waits end by their deadline, and by Close.
func TestKernel_Packets(t *testing.T) {
	onKernelLinks(t, func(t *testing.T, open func(*testing.T, fault.Config) []*rawnet.Net) {
		for name, f := range map[string]fault.Config{"": {}, "fault": {Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}} {
			t.Run(name, func(t *testing.T) {
				nets := open(t, f)
				a, err := nets[0].ListenPacket("")
				must(t, err)
				b, err := nets[1].ListenPacket("echo")
				must(t, err)
				echoed := make(chan error)
				go func() { echoed <- echoPackets(b) }()
				to, err := nets[0].Resolve("1:echo")
				must(t, err)
				for _, size := range []int{0, 1, 64, a.MaxData(to)} {
					askPacket(t, a, to, bytes.Repeat([]byte{byte(size)}, size))
				}
				_, err = a.WriteTo(make([]byte, a.MaxData(to)+1), to)
				isOp(t, err, "write", syscall.EMSGSIZE, "")
				for err = nil; err == nil; { // what comes twice
					must(t, a.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
					_, _, err = a.ReadFrom(nil)
				}
				isOp(t, err, "read", os.ErrDeadlineExceeded, "")
				must(t, b.Close())
				if err := <-echoed; !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
		}
	})
}

// echoPackets sends back what comes, until the connection is closed.
func echoPackets(p net.PacketConn) error {
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.ReadFrom(b)
		if err == nil {
			_, err = p.WriteTo(b[:n], from)
		}
		if err != nil {
			return err
		}
	}
}

// askPacket sends a packet until it comes back.
func askPacket(t *testing.T, p net.PacketConn, to net.Addr, data []byte) {
	t.Helper()
	got := make([]byte, len(data)+1)
	for ctx := limit(t); ctx.Err() == nil; {
		_, err := p.WriteTo(data, to)
		must(t, err)
		must(t, p.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		for err == nil {
			var n int
			var from net.Addr
			if n, from, err = p.ReadFrom(got); err == nil && from == to && bytes.Equal(got[:n], data) {
				return
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	t.Fatalf("a packet of %d bytes did not come back", len(data))
}
