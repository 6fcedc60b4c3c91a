package mcd_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// relay is a stranger without the key, at an address of its own. What it gets it sends on as it is.
type relay struct {
	t    *testing.T
	conn *net.UDPConn
	to   map[transport.MAC]netip.AddrPort // where the stations are
	read atomic.Int64                     // frames that it got and that are no contact
	all  atomic.Int64                     // of all kinds
}

func newRelay(t *testing.T, stations ...*udp.Link) *relay {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, conn: conn, to: make(map[transport.MAC]netip.AddrPort)}
	for _, l := range stations {
		r.to[l.MAC()] = l.Addr()
	}
	var done sync.WaitGroup
	done.Go(r.run)
	t.Cleanup(func() {
		r.leave()
		done.Wait()
	})
	return r
}

func (r *relay) leave() { _ = r.conn.Close() }

func (r *relay) run() {
	b := make([]byte, 2000)
	for {
		n, err := r.conn.Read(b)
		if err != nil {
			return
		}
		f, err := transport.ParseFrame(b[:n])
		if r.all.Add(1); err != nil || len(f.Payload) == 0 || wire.Kind(f.Payload[0]&0x0f) != wire.Contact {
			r.read.Add(1)
		}
		r.send(&f)
	}
}

// send sends a frame on to whom it is for.
func (r *relay) send(f *transport.Frame) {
	for mac, at := range r.to {
		if mac != f.Src && (mac == f.Dst || f.Dst == transport.Broadcast) {
			_, _ = r.conn.WriteToUDPAddrPort(f.AppendTo(nil), at)
		}
	}
}

// introduces tells each station that the other one is where the relay is.
func (r *relay) introduces(as transport.MAC, stations ...transport.MAC) {
	at := r.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	ip := at.Addr().As4()
	for _, to := range stations {
		var b []byte
		for _, mac := range stations {
			if mac != to {
				b = append(append(append(b, mac[:]...), 4), ip[:]...)
				b = append(b, byte(at.Port()>>8), byte(at.Port()))
			}
		}
		r.send(&transport.Frame{Dst: to, Src: as, EtherType: 0x88b6, Payload: b})
		for _, src := range stations { // and by what it says itself, or as a station that it makes up
			r.send(&transport.Frame{Dst: to, Src: src, EtherType: transport.EtherTypeDefault, Payload: make([]byte, 112)})
		}
		r.send(&transport.Frame{Dst: to, Src: mac(99), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 112)})
	}
}

// Two nodes that know a third one alone meet by its word, and by nobody else's: a stranger who
// introduces himself in their place, before and after they are introduced, gets nothing at all.
func TestKeys_StrangersIntroduceNobody(t *testing.T) {
	var links []*udp.Link
	table := make([]mcd.Node, 3)
	for k := range table {
		cfg := udp.Config{MAC: mac(byte(k + 1))}
		if k > 0 {
			cfg.Seeds = []string{links[0].Addr().String()}
		}
		l, err := udp.Open("127.0.0.1:0", cfg)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}}
	}
	stranger := newRelay(t, links...)
	lie := func() {
		for range 3 {
			stranger.introduces(mac(1), mac(2), mac(3))
		}
	}
	lie()
	var ports [3]*mcd.Port
	for k, l := range links {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Keys: ring(1, false), Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ports[k] = port(t, e, 1)
	}
	for _, text := range []string{"before they are introduced", "behind that"} {
		lie()
		for k := 1; k < 3; k++ {
			for until := time.Now().Add(20 * time.Second); !hears(t, ports[3-k], text); {
				if time.Now().After(until) {
					t.Fatalf("%s: they do not meet; the stranger got %d frames", text, stranger.all.Load())
				}
				for _, p := range ports { // as cluster.Join sends them
					if err := p.SendVia(t.Context(), 0, mcd.ToAll(9), []byte("here I am")); err != nil {
						t.Fatal(err)
					}
				}
				lie()
				send(t, ports[k], ports[3-k].Addr(), []byte(text))
			}
		}
	}
	if n := stranger.all.Load(); n != 0 {
		t.Errorf("the stranger got %d frames", n)
	}
}

// hears reports whether a text is the next that comes, soon, behind earlier ones.
func hears(t *testing.T, p *mcd.Port, text string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for b := make([]byte, 100); ; {
		n, _, err := p.Recv(ctx, b)
		if err != nil || string(b[:n]) == text {
			return err == nil
		}
	}
}

// overheard is a link of which a relay has all that is sent, and sends it on before it leaves.
type overheard struct {
	*udp.Link
	by *relay
}

func (l *overheard) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		f := frames[i]
		if f.Src == (transport.MAC{}) {
			f.Src = l.MAC()
		}
		l.by.send(&f)
	}
	return l.Link.Send(frames)
}

// A relay that has all that a node sends, and is faster than it, does not become the path to it: it
// gets nothing but what the node is asked. When it leaves nothing is missing.
func TestKeys_RelaysLeadNowhere(t *testing.T) {
	for name, known := range map[string]bool{"known": true, "heard through the relay first": false} {
		t.Run(name, func(t *testing.T) {
			a, err := udp.Open("127.0.0.1:0", udp.Config{MAC: mac(1)})
			if err != nil {
				t.Fatal(err)
			}
			b, err := udp.Open("127.0.0.1:0", udp.Config{MAC: mac(2),
				Stations: []udp.Station{{Addr: a.Addr().String(), MAC: mac(1)}}})
			if err != nil {
				t.Fatal(err)
			}
			if known {
				if err := a.AddStation(udp.Station{Addr: b.Addr().String(), MAC: mac(2)}); err != nil {
					t.Fatal(err)
				}
			}
			stranger := newRelay(t, a, b)
			table := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}}}
			var ports [2]*mcd.Port
			for k, l := range []transport.Link{a, &overheard{b, stranger}} {
				e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Keys: ring(1, false), Spin: -1}, l)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				ports[k] = port(t, e, 1)
			}
			begin, left := time.Now(), 0
			for n := 0; left < 20; n++ {
				if left > 0 || n >= 80 && time.Since(begin) > 1500*time.Millisecond { // longer than one may be silent
					stranger.leave()
					left++
				}
				send(t, ports[1], ports[0].Addr(), []byte("there"))
				recv(t, ports[0], "there")
				back := fmt.Sprint("back ", n)
				for until := time.Now().Add(20 * time.Second); !hears(t, ports[1], back); { // in doubt at first
					if time.Now().After(until) {
						t.Fatalf("%q does not come; the relay read %d frames", back, stranger.read.Load())
					}
					send(t, ports[0], ports[1].Addr(), []byte(back))
				}
			}
			if n := stranger.read.Load(); n != 0 {
				t.Errorf("the relay read %d frames", n)
			}
		})
	}
}

// translated is a link of a node that knows another address of its own than the others see, as one
// behind a translation of addresses, or that says none, as one of an older version.
type translated struct{ *udp.Link }

func (translated) Departure(*transport.Frame) transport.Place { return transport.Place{1} }

// A node whose addresses are translated is met, and found where it has moved once it is silent where it
// was.
func TestRoaming_BehindATranslation(t *testing.T) {
	keys := ring(1, false)
	a, la := overUDP(t, 0, keys, nil)
	at := port(t, a, 1)
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{la.MAC()}}, {ID: 1, MACs: []transport.MAC{{2, 0, 0, 0, 0, 1}}}}
	for _, where := range []string{"from here", "from there"} {
		l, err := udp.Open("127.0.0.1:0", udp.Config{MAC: table[1].MACs[0],
			Stations: []udp.Station{{Addr: la.Addr().String(), MAC: la.MAC()}}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := mcd.Open(mcd.Config{Cluster: cluster, Node: 1, Nodes: table, Keys: keys, Spin: -1}, translated{l})
		if err != nil {
			t.Fatal(err)
		}
		from := port(t, b, 1)
		for until := time.Now().Add(20 * time.Second); !hears(t, from, "back"); {
			if time.Now().After(until) {
				t.Fatalf("%s: it is not found", where)
			}
			send(t, from, at.Addr(), []byte(where))
			recv(t, at, where)
			send(t, at, from.Addr(), []byte("back"))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
