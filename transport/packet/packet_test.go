//go:build linux

package packet_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/packet"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func open(name string) (*packet.Link, error) { return packet.Open(name, packet.Config{}) }

var interfaces = flag.String("interfaces", "",
	"run TestLink on two interfaces of this machine that a cable joins: eth0,eth1")

// openTrains opens links that send trains.
func openTrains(name string) (*packet.Link, error) {
	return packet.Open(name, packet.Config{Trains: true})
}

// The suite holds where frames go as trains.
func TestLink_Trains(t *testing.T) {
	for name, mtu := range map[string]int{"MTU 1500": 1500, "MTU 9000": 9000} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{MTU: mtu})
			linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
				a, b := testbed.OpenPair(t, bed, openTrains)
				testbed.MeetTrains(t, a, b)
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
