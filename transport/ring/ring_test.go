//go:build linux

package ring_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/ring"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func open(name string) (*ring.Link, error) { return ring.Open(name, ring.Config{}) }

var interfaces = flag.String("interfaces", "",
	"run TestLink on two interfaces of this machine that a cable joins: eth0,eth1")

// openTrains opens links that send trains.
func openTrains(name string) (*ring.Link, error) { return ring.Open(name, ring.Config{Trains: true}) }

// meet has both links of a pair learn that the other one receives trains.
func meet(t testing.TB, a, b *ring.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	in := make([]transport.Frame, 8)
	for _, l := range [][2]*ring.Link{{a, b}, {b, a}} {
		from, to := l[0], l[1]
		frame := transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 64)}
		for sent := uint64(0); sent == 0; sent, _ = from.Trains() {
			if _, err := from.Send([]transport.Frame{frame, frame}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				n, err := to.Poll(in)
				if err == nil {
					_, err = from.Poll(in)
				}
				if err == nil && n == 0 && ctx.Err() != nil {
					err = ctx.Err()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, l := range []*ring.Link{a, b} {
		for n := 1; n > 0; n, _ = l.Poll(in) {
		}
	}
}

// The suite holds where frames go as trains.
func TestLink_Trains(t *testing.T) {
	for name, mtu := range map[string]int{"MTU 1500": 1500, "MTU 9000": 9000} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
				a, b := testbed.OpenPair(t, bed, openTrains)
				meet(t, a, b)
				return a, b
			})
		})
	}
}

func TestLink(t *testing.T) {
	if *interfaces != "" {
		linktest.TestLink(t, onInterfaces)
		return
	}
	for name, mtu := range map[string]int{"MTU 1500": 1500, "MTU 9000": 9000} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return testbed.OpenPair(t, bed, open) })
		})
	}
}

// onInterfaces opens links on the two interfaces of the flag.
func onInterfaces(t *testing.T) (a, b transport.Link) {
	t.Helper()
	var links []transport.Link
	for name := range strings.SplitSeq(*interfaces, ",") {
		l, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() }) // the suite has closed it, unless the test failed before
		links = append(links, l)
	}
	if len(links) != 2 {
		t.Fatalf("-interfaces %s: want two, as eth0,eth1", *interfaces)
	}
	return links[0], links[1]
}
