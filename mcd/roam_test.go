package mcd_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// overUDP opens a node whose link listens on a port of its own, and knows another one.
func overUDP(t *testing.T, node byte, keys *keyring.Ring, other *udp.Link) (*mcd.Endpoint, *udp.Link) {
	t.Helper()
	mac := func(n byte) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, n} }
	cfg := udp.Config{MAC: mac(node)}
	if other != nil {
		cfg.Stations = []udp.Station{{Addr: other.Addr().String(), MAC: other.MAC()}}
	}
	l, err := udp.Open("127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(0)}}, {ID: 1, MACs: []transport.MAC{mac(1)}}}
	e, err := mcd.Open(mcd.Config{Cluster: cluster, Node: mcd.NodeID(node), Nodes: table, Keys: keys, Spin: -1}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, l
}

// A node whose address changes, as it was restarted elsewhere, is still itself where frames are
// authenticated. Where they are not, whoever claims so is not believed.
func TestRoaming(t *testing.T) {
	for name, keys := range map[string]*keyring.Ring{"with a key": ring(1, false), "without": nil} {
		t.Run(name, func(t *testing.T) {
			a, la := overUDP(t, 0, keys, nil)
			at := port(t, a, 1)
			old, _ := overUDP(t, 1, keys, la)
			send(t, port(t, old, 1), at.Addr(), []byte("from here"))
			recv(t, at, "from here")
			// The old one stays open, so that the new one has another port.
			b, _ := overUDP(t, 1, keys, la)
			from := port(t, b, 1)
			send(t, from, at.Addr(), []byte("from there"))
			if keys == nil {
				for until := time.Now().Add(10 * time.Second); la.Counters().RxMalformed == 0; {
					if time.Now().After(until) {
						t.Fatalf("the frame was not refused: %+v", la.Counters())
					}
					time.Sleep(time.Millisecond)
				}
				return
			}
			recv(t, at, "from there")
			send(t, at, from.Addr(), []byte("back"))
			recv(t, from, "back")
		})
	}
}

func recv(t *testing.T, p *mcd.Port, want string) {
	t.Helper()
	buf := make([]byte, 100)
	if n, _, err := p.Recv(limit(t), buf); err != nil || string(buf[:n]) != want {
		t.Fatalf("%q, %v; want %q", buf[:n], err, want)
	}
}

// publicLink says that the internet reaches it.
type publicLink struct{ transport.Link }

func (publicLink) PublicAddr() string { return "203.0.113.5" }

func TestOpen_PublicLinkNeedsKeys(t *testing.T) {
	l := publicLink{switched(t, 1)[0]}
	if _, err := mcd.Open(mcd.Config{}, l); !errors.Is(err, mcd.ErrNoKeys) || !strings.Contains(err.Error(), "203.0.113.5") {
		t.Errorf("%v, want ErrNoKeys and the address", err)
	}
	e, err := mcd.Open(mcd.Config{Keys: ring(1, false)}, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A node that only receives is where its answer to a challenge came from, whatever its station was
// said to be: it sends nothing else that could tell.
func TestRoaming_OfOneThatOnlyReceives(t *testing.T) {
	keys := ring(1, false)
	elsewhere, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	a, la := overUDP(t, 0, keys, nil)
	mac := transport.MAC{2, 0, 0, 0, 0, 1}
	if err := la.AddStation(udp.Station{Addr: elsewhere.LocalAddr().String(), MAC: mac}); err != nil {
		t.Fatal(err)
	}
	b, _ := overUDP(t, 1, keys, la)
	from, to := port(t, a, 1), port(t, b, 1)
	for until := time.Now().Add(10 * time.Second); a.Counters().RxContacts < 2; { // a challenge, and an answer
		if time.Now().After(until) {
			t.Fatalf("the nodes do not meet: %+v", a.Counters())
		}
		time.Sleep(time.Millisecond)
	}
	send(t, from, to.Addr(), []byte("to you alone"))
	recv(t, to, "to you alone")
}
