package rawnet_test

import (
	"math/rand/v2"
	"path/filepath"
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
	"github.com/rawlane/rawlane/transport/udp"
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

// onKernelLinks runs a test over the kernel's links between namespaces, and over UDP, also with a
// key.
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
