// Package kernellink runs the conformance suite of links on those of the kernel: between network
// namespaces, and on interfaces of this machine that a cable joins.
package kernellink

import (
	"flag"
	"strings"
	"testing"

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
		links = append(links, l)
	}
	if len(links) != 2 {
		t.Fatalf("-interfaces %s: want two, as eth0,eth1", *interfaces)
	}
	return links[0], links[1]
}
