package xdp_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/xdp"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envHold); name != "" {
		hold(name) // as a process that is killed: opening_linux_test.go
	}
	os.Exit(testbed.Main(m))
}

// patience is how long what must happen may take.
const patience = 20 * time.Second

// opener opens links in a mode.
func opener(mode xdp.Mode) func(ifname string) (*xdp.Link, error) {
	return func(ifname string) (*xdp.Link, error) { return xdp.Open(ifname, xdp.Config{Mode: mode}) }
}

// need skips the test where there is no XDP.
func need(t testing.TB) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error { _, err := xdp.Probe(ifname); return err })
}

// modeName is for NICs in whose driver there are better modes than in veth's: docs/drivers.md.
var modeName = flag.String("mode", xdp.ModeAuto.String(), "how the links of TestLink get their frames")

// Frames of the largest MTU fill a page.
func TestLink(t *testing.T) {
	need(t)
	mode, err := xdp.ParseMode(*modeName)
	if err != nil {
		t.Fatal(err)
	}
	kernellink.TestAt(t, opener(mode), map[string]int{"MTU 1500": 1500, "MTU 3822": 3822})
}

func TestLink_Native(t *testing.T) {
	need(t)
	kernellink.TestAt(t, opener(xdp.Native), map[string]int{"MTU 1500": 1500})
}

// pair opens links on a bed of two, for as long as the test.
func pair(t testing.TB, cfg xdp.Config) (bed *testbed.Bed, a, b *xdp.Link) {
	t.Helper()
	need(t)
	bed = testbed.ForTest(t, testbed.Config{})
	a, b = testbed.OpenPair(t, bed, func(ifname string) (*xdp.Link, error) { return xdp.Open(ifname, cfg) })
	return bed, a, b
}

func frameTo(l transport.Link, payload string) transport.Frame {
	return transport.Frame{Dst: l.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte(payload)}
}

func send(t *testing.T, l transport.Link, frames ...transport.Frame) {
	t.Helper()
	if n, err := l.Send(frames); err != nil {
		t.Fatalf("sent %d: %v", n, err)
	}
}

// A link says how it gets its frames, and why not better. On veth there is no zero-copy.
func TestModes(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	for _, c := range []struct{ asked, got xdp.Mode }{
		{xdp.ModeAuto, xdp.Generic}, {xdp.Generic, xdp.Generic}, {xdp.Native, xdp.Native},
	} {
		l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return opener(c.asked)(testbed.Interface(0)) })
		if err != nil {
			t.Fatal(err)
		}
		if l.Mode() != c.got || l.Fallback() != "" || l.Queues() != 1 {
			t.Errorf("%v: %v, %q, %d queues; want %v", c.asked, l.Mode(), l.Fallback(), l.Queues(), c.got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return opener(xdp.ZeroCopy)(testbed.Interface(0)) })
	if !errors.Is(err, transport.ErrNotSupported) || !strings.Contains(err.Error(), "xdp eth0: open: zero-copy: not supported") {
		t.Errorf("zero-copy on veth: %v", err)
	}
	// What failed has left nothing.
	l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return opener(xdp.ModeAuto)(testbed.Interface(0)) })
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
