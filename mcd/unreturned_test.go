package mcd

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// piping opens two nodes on a pipe, of which node 0 sends by a link that may be full, with a port 1
// each. Both have a port 2, whose function does not return. A pipe wakes nobody: the test alone polls,
// until it has, and then the unmaskLoop now and then.
func piping(t *testing.T, fail func()) (link *narrow, p [2]*Port) {
	t.Helper()
	x, y := linktest.Pipe()
	link = &narrow{Link: x}
	table := []Node{{ID: 0, MACs: []transport.MAC{x.MAC()}}, {ID: 1, MACs: []transport.MAC{y.MAC()}}}
	for k, l := range []transport.Link{link, y} {
		e, err := Open(Config{Node: NodeID(k), Spin: time.Hour, Nodes: table}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		if p[k], err = e.OpenPort(1, PortOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.OpenPort(2, PortOptions{Receive: func(batch []Message, _ bool) {
			if len(batch) > 0 { // and not where polling stops
				fail()
			}
		}}); err != nil {
			t.Fatal(err)
		}
	}
	return link, p
}

// A Recv or TryRecv that another port's function leaves, by a panic or the goroutine's end, has its
// memory back: the next message is the next Recv's.
func TestRecv_ThatDoesNotReturn(t *testing.T) {
	for name, fail := range noreturn.Ways {
		for what, recv := range map[string]func(*Port, []byte) error{
			"Recv":    func(p *Port, b []byte) error { _, _, err := p.Recv(t.Context(), b); return err },
			"TryRecv": func(p *Port, b []byte) error { _, _, _, err := p.TryRecv(b); return err },
		} {
			t.Run(name+" in "+what, func(t *testing.T) {
				_, p := piping(t, fail)
				if err := p[0].Send(t.Context(), Addr{Node: 1, Port: 2}, nil); err != nil {
					t.Fatal(err)
				}
				b := []byte("mine")
				noreturn.Run(t, func() error { return recv(p[1], b) })
				if err := p[0].Send(t.Context(), p[1].Addr(), []byte("next")); err != nil {
					t.Fatal(err)
				}
				next := make([]byte, 8)
				n, _, ok, err := p[1].TryRecv(next)
				for !ok && err == nil && string(b) == "mine" { // the unmaskLoop had the poll lock
					n, _, ok, err = p[1].TryRecv(next)
				}
				if !ok || err != nil || string(next[:n]) != "next" || string(b) != "mine" {
					t.Errorf("received %q, %v, %v; the memory of the call before holds %q", next[:n], ok, err, b)
				}
			})
		}
	}
}

// A Send that waits for room, and is left so, has its memory back: nothing is sent from there.
func TestSend_ThatDoesNotReturn(t *testing.T) {
	for name, fail := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			link, p := piping(t, fail)
			if err := p[1].Send(t.Context(), Addr{Node: 0, Port: 2}, nil); err != nil {
				t.Fatal(err)
			}
			link.full.Store(true)
			b := []byte("first")
			noreturn.Run(t, func() error { return p[0].Send(t.Context(), p[1].Addr(), b) })
			copy(b, "other")
			link.full.Store(false)
			if err := p[0].Send(t.Context(), p[1].Addr(), []byte("next")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 8)
			if n, _, ok, err := p[1].TryRecv(got); !ok || err != nil || string(got[:n]) != "next" {
				t.Errorf("received %q, %v, %v; want what was sent next alone", got[:n], ok, err)
			}
		})
	}
}
