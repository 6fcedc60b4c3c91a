// Package kernellink runs the conformance suite of links on those of the kernel: between network
// namespaces, and on interfaces of this machine that a cable joins. It has their benchmarks, too.
package kernellink

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// interfaces is for machines with real NICs: docs/drivers.md.
var interfaces = flag.String("interfaces", "",
	"run TestLink on two interfaces of this machine that a cable joins: eth0,eth1")

// mtus are those of the namespaces' interfaces.
var mtus = map[string]int{"MTU 1500": 1500, "MTU 9000": 9000}

// Test runs the suite on links that open makes of an interface.
func Test[L transport.Link](t *testing.T, open func(ifname string) (L, error)) {
	TestAt(t, open, mtus)
}

// TestAt is Test for interfaces of other MTUs.
func TestAt[L transport.Link](t *testing.T, open func(ifname string) (L, error), mtus map[string]int) {
	if *interfaces != "" {
		linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return onInterfaces(t, open) })
		return
	}
	for name, mtu := range mtus {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return testbed.OpenPair(t, bed, open) })
		})
	}
}

// TestTrains runs the suite on links that open makes, whose frames go as trains.
func TestTrains[L transport.Link](t *testing.T, open func(ifname string) (L, error)) {
	for name, mtu := range mtus {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
				a, b := testbed.OpenPair(t, bed, open)
				testbed.MeetTrains(t, a, b)
				testbed.MeetTrains(t, b, a)
				return a, b
			})
		})
	}
}

// onInterfaces opens links on the two interfaces of the flag.
func onInterfaces[L transport.Link](t *testing.T, open func(ifname string) (L, error)) (a, b transport.Link) {
	t.Helper()
	var links []transport.Link
	for name := range strings.SplitSeq(*interfaces, ",") {
		l, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() }) // the suite has closed it, unless the test failed before
		links = append(links, settled{l})
	}
	if len(links) != 2 {
		t.Fatalf("-interfaces %s: want two, as eth0,eth1", *interfaces)
	}
	time.Sleep(settling)
	return links[0], links[1]
}

// settled is a link on a NIC whose driver may set its filters after the call that asks for it has
// returned: virtio_net's leaves it to a work queue. The suite's frames wait for that.
type settled struct{ transport.Link }

const settling = 100 * time.Millisecond

func (s settled) Unwrap() transport.Link { return s.Link }

func (s settled) Join(group transport.MAC) error {
	err := transport.Join(s.Link, group)
	time.Sleep(settling)
	return err
}

func (s settled) Leave(group transport.MAC) error {
	err := transport.Leave(s.Link, group)
	time.Sleep(settling)
	return err
}
