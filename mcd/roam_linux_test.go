package mcd_test

import (
	"cmp"
	"context"
	"net"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// A node that only answers gets another IP address, as from DHCP: those that ask it find it there.
func TestRoaming_OfOneThatAnswers(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	old, other := testbed.IP(1, 0), net.IPv4(10, 77, 0, 99).To4()
	var nodes [2]*mcd.Endpoint
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}}}
	for k := range nodes {
		cfg := udp.Config{MAC: mac(byte(k + 1))}
		if k == 0 {
			cfg.Stations = []udp.Station{{Addr: net.JoinHostPort(old.String(), "7401"), MAC: mac(2)}}
		}
		l, err := testbed.In(bed.Node(k), func() (*udp.Link, error) { return udp.Open("0.0.0.0:7401", cfg) })
		if err != nil {
			t.Fatal(err)
		}
		nodes[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Keys: ring(1, false)}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer nodes[k].Close()
	}
	answer := port(t, nodes[1], 2)
	_, err := nodes[1].OpenPort(1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		for _, m := range batch {
			_ = answer.TrySend(0, mcd.To(m.From), m.Payload)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ask := port(t, nodes[0], 1)
	answered := func() bool {
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
			send(t, ask, mcd.Addr{Node: 1, Port: 1}, []byte("where are you?"))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, _, err := ask.Recv(ctx, make([]byte, 100))
			if cancel(); err == nil {
				return true
			}
		}
		return false
	}
	for begun := time.Now(); time.Since(begun) < 3*time.Second; { // until it has looked where it is, twice
		if !answered() {
			t.Fatal("no answer")
		}
	}
	if err := cmp.Or(bed.Node(1).RemoveIP(0, old), bed.Node(1).AddIP(0, other)); err != nil {
		t.Fatal(err)
	}
	if !answered() {
		t.Errorf("no answer from %v: %+v", other, nodes[1].Counters())
	}
}
