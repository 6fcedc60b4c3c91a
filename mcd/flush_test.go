package mcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// openFull opens an endpoint whose link has no room until room is called.
func openFull(t *testing.T) (e *Endpoint, p *Port, link *script, other *linktest.End, room func()) {
	t.Helper()
	e, p, links, others := openScripts(t, 1, func(cfg *Config) { cfg.Spin = time.Hour })
	var mu sync.Mutex
	full := true
	link = links[0]
	link.send = func(frames []transport.Frame) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if full {
			return 0, transport.ErrBusy
		}
		return len(frames), nil
	}
	return e, p, link, others[0], func() {
		mu.Lock()
		defer mu.Unlock()
		full = false
	}
}

// Whoever polls or sends tries what waits for room, 5 us after the link has refused it: nobody waits
// for the queue's own retry.
func TestFlush_ByWhoeverMakesProgress(t *testing.T) {
	to := To(Addr{Node: 1, Port: 1})
	for _, c := range []struct {
		name     string
		progress func(t *testing.T, e *Endpoint, p *Port, other *linktest.End, done func() bool)
	}{
		{"Progress", func(_ *testing.T, e *Endpoint, _ *Port, _ *linktest.End, _ func() bool) { e.Progress() }},
		{"TrySend", func(t *testing.T, _ *Endpoint, p *Port, _ *linktest.End, _ func() bool) {
			if err := p.TrySend(0, to, nil); err != nil {
				t.Errorf("TrySend behind what may go: %v", err)
			}
		}},
		{"TrySendInPlace", func(t *testing.T, _ *Endpoint, p *Port, _ *linktest.End, _ func() bool) {
			if n, err := p.TrySendInPlace(0, to, make([]byte, p.e.Headroom())); n != 1 || err != nil {
				t.Errorf("TrySendInPlace behind what may go: %d, %v", n, err)
			}
		}},
		{"a link's goroutine without one", func(t *testing.T, e *Endpoint, _ *Port, _ *linktest.End, _ func() bool) {
			if !e.lockPoll() {
				t.Fatal("no poll lock")
			}
			e.busyPoll(nil)
		}},
		{"a link's goroutine with a frame", func(t *testing.T, e *Endpoint, _ *Port, other *linktest.End, _ func() bool) {
			sendRaw(t, other, e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 1}, nil)
			if !e.lockPoll() {
				t.Fatal("no poll lock")
			}
			e.busyPoll(nil)
		}},
		{"a wait that spins", func(t *testing.T, e *Endpoint, _ *Port, _ *linktest.End, done func() bool) {
			ctx := &watched{Context: t.Context()}
			var c Completion
			looks := 0
			ctx.asked = func() {
				if looks++; looks == 2 { // after the first one it flushes
					if !done() {
						t.Error("it has not flushed when it looks again")
					}
					c.Complete(nil)
				}
			}
			if err := e.Await(ctx, &c); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, p, _, other, room := openFull(t)
				defer e.Close()
				d := descTo(1, "waits")
				if err := p.PostSend(d); err != nil {
					t.Fatal(err)
				}
				e.flush() // the link is tried, and left alone for 5 us
				room()
				if e.flush(); d.Done() {
					t.Error("the link was tried again at once")
				}
				time.Sleep(5 * time.Microsecond)
				c.progress(t, e, p, other, d.Done)
				if !d.Done() || d.Err() != nil {
					t.Errorf("what waits: done %v, %v", d.Done(), d.Err())
				}
			})
		})
	}
}

// sendRaw sends a frame with that header and payload from the other end of a script's pipe.
func sendRaw(t *testing.T, from *linktest.End, dst transport.MAC, h *wire.Header, payload []byte) {
	t.Helper()
	b := make([]byte, HeaderLen+len(payload))
	wire.Put(b, h, payload)
	f := transport.Frame{Dst: dst, Src: from.MAC(), EtherType: transport.EtherTypeDefault, Payload: b}
	if _, err := from.Send([]transport.Frame{f}); err != nil {
		t.Fatal(err)
	}
}

// A link that refuses the messages to four nodes counts as full. Those to others are tried first the
// next time, so that each has its turn.
func TestFlush_FourRefusalsAreAFullLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 12
		x, _ := linktest.Pipe()
		link := &script{Link: x}
		var table []Node
		for k := range nodes {
			table = append(table, Node{ID: NodeID(k + 1), MACs: []transport.MAC{{2, 1, 0, 0, 0, byte(k + 1)}}})
		}
		e, err := Open(Config{Spin: -1, Nodes: table}, link)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		full := true
		var tried []int
		link.send = func(frames []transport.Frame) (int, error) {
			tried = append(tried, int(frames[0].Dst[5]))
			if full {
				return 0, transport.ErrBusy
			}
			return len(frames), nil
		}
		q := &e.nics[0].queue
		var ds []*SendDesc
		for k := range nodes {
			ds = append(ds, descTo(NodeID(k+1), "x"))
			if err := p.PostSend(ds[k]); err != nil {
				t.Fatal(err)
			}
		}
		turns := map[int]int{}
		for range 3 {
			tried = nil
			q.retry()
			if len(tried) != 4 {
				t.Errorf("%d nodes were tried, want 4", len(tried))
			}
			for _, node := range tried {
				turns[node]++
			}
		}
		if len(turns) != nodes {
			t.Errorf("in three turns of four, %d of %d nodes were tried", len(turns), nodes)
		}
		full = false
		q.retry()
		for k, d := range ds {
			if !d.Done() || d.Err() != nil {
				t.Errorf("node %d: done %v, %v, though there is room", k+1, d.Done(), d.Err())
			}
		}
		if lanes := q.lanes[:cap(q.lanes)]; slices.ContainsFunc(lanes, func(l *sendLane) bool { return l != nil }) {
			t.Error("a lane is kept in memory, and nothing waits in it")
		}
	})
}

// A single message that waits is overtaken by none, though the link has room by now: not one to its
// node, nor one to all; and one to all not by any.
func TestTrySend_OvertakesNothing(t *testing.T) {
	node, all := To(Addr{Node: 1, Port: 1}), ToAll(1)
	for _, c := range []struct{ waits, next Dest }{{node, node}, {node, all}, {all, node}, {all, all}} {
		synctest.Test(t, func(t *testing.T) { // time stands still: the link was full just now
			e, p, _, _, room := openFull(t)
			defer e.Close()
			d := &SendDesc{To: c.waits}
			if err := p.PostSend(d); err != nil {
				t.Fatal(err)
			}
			e.flush() // the link is tried, and left alone from now on
			room()
			if err := p.TrySend(0, c.next, nil); !errors.Is(err, transport.ErrBusy) || d.Done() {
				t.Errorf("to %v past one to %v: %v, done %v; want ErrBusy", c.next, c.waits, err, d.Done())
			}
			if n, err := p.TrySendInPlace(0, c.next, make([]byte, p.e.Headroom())); n != 0 || !errors.Is(err, transport.ErrBusy) {
				t.Errorf("in place to %v past one to %v: %d, %v; want ErrBusy", c.next, c.waits, n, err)
			}
		})
	}
}

// What was received into, or waited to be sent, is the caller's again: neither the port nor the
// endpoint keeps it alive.
func TestBuffers_AreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _, other, room := openFull(t)
		defer e.Close()
		for _, receive := range []func(b []byte) error{
			func(b []byte) error { _, _, err := p.Recv(t.Context(), b); return err },
			func(b []byte) error { _, _, _, err := p.TryRecv(b); return err },
		} {
			sendRaw(t, other, e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 1}, []byte("hello"))
			if err := receive(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			if d := p.spare.Load(); d != nil && d.Buf != nil {
				t.Error("a buffer is kept that was received into")
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Send(ctx, Addr{Node: 1, Port: 1}, []byte("given up")); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if d, _ := e.spareDescs.Get().(*SendDesc); d != nil && d.Payload != nil {
			t.Error("a payload is kept that was not sent")
		}
		room()
	})
}

// No retry comes after Close.
func TestClose_EndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _, _, _ := openFull(t)
		if err := p.PostSend(descTo(1, "waits")); err != nil {
			t.Fatal(err)
		}
		q := &e.nics[0].queue
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.lanes) != 0 {
			t.Errorf("%d lanes are left, and nothing waits", len(q.lanes))
		}
		if !q.armed {
			t.Error("the queue has tried again, and its endpoint is closed")
		}
	})
}
