package mcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// A descriptor that the link cannot send at all fails, alone: at once, and from the queue.
func TestPostSend_OneFails(t *testing.T) {
	burnt := errors.New("cable burnt")
	for _, full := range []bool{false, true} {
		_, p, links, _ := openScripts(t, 1)
		var busy atomic.Bool
		busy.Store(full)
		var sent []string
		links[0].send = func(frames []transport.Frame) (int, error) {
			if busy.Load() {
				return 0, transport.ErrBusy
			}
			for i, f := range frames {
				text := string(f.Payload[HeaderLen:])
				if strings.HasPrefix(text, "bad") {
					return i, burnt
				}
				sent = append(sent, text)
			}
			return len(frames), nil
		}
		var ds []*SendDesc
		texts := []string{"bad 0", "1", "bad 2", "bad 3", "4", "5"}
		for _, text := range texts {
			ds = append(ds, descTo(1, text))
		}
		if err := p.PostSend(ds...); err != nil {
			t.Fatal(err)
		}
		if full {
			busy.Store(false)
			p.e.nics[0].queue.retry()
		}
		for i, d := range ds {
			if bad := strings.HasPrefix(texts[i], "bad"); !d.Done() || errors.Is(d.Err(), burnt) != bad || !bad && d.Err() != nil {
				t.Errorf("full %v: %q: done %v, %v", full, texts[i], d.Done(), d.Err())
			}
		}
		if want := []string{"1", "4", "5"}; !slices.Equal(sent, want) {
			t.Errorf("full %v: sent %q, want %q", full, sent, want)
		}
	}
}

// What is posted while the link is full asks it once, and not at all behind others that wait for
// the same node.
func TestPostSend_AsksAFullLinkOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, links, _ := openScripts(t, 1)
		tries := 0
		links[0].send = func([]transport.Frame) (int, error) { tries++; return 0, transport.ErrBusy }
		for i, want := range []int{1, 1, 1} {
			if err := p.PostSend(descTo(1, "x")); err != nil {
				t.Fatal(err)
			}
			if tries != want {
				t.Errorf("%d descriptors posted: the link was asked %d times, want %d", i+1, tries, want)
			}
		}
	})
}

// A descriptor that comes to the queue when its port, or the endpoint, is closed fails, and is not
// sent.
func TestPostSend_PortClosesMeanwhile(t *testing.T) {
	for _, all := range []bool{false, true} {
		e, p, links, _ := openScripts(t, 1)
		links[0].send = func(frames []transport.Frame) (int, error) {
			t.Error("sent by a closed port")
			return len(frames), nil
		}
		ds := []*SendDesc{descTo(1, "x"), descTo(1, "y"), descTo(1, "z")}
		for _, d := range ds {
			d.port, d.neighbour = p, &e.lookup(1).neighbours[0]
		}
		closeIt := p.Close
		if all {
			closeIt = e.Close
		}
		if err := closeIt(); err != nil {
			t.Fatal(err)
		}
		e.nics[0].queue.post(ds[:1]) // alone,
		e.nics[0].queue.post(ds[1:]) // and with others
		for i, d := range ds {
			if !d.Done() || !errors.Is(d.Err(), ErrClosed) {
				t.Errorf("descriptor %d: done %v, %v", i, d.Done(), d.Err())
			}
		}
	}
}

// Only what waits can be taken back: what was sent just as its sender gave up counts as sent.
func TestSendQueue_RemoveOfWhatWasSent(t *testing.T) {
	e, p, links, _ := openScripts(t, 1)
	var full atomic.Bool
	full.Store(true)
	links[0].send = func(frames []transport.Frame) (int, error) {
		if full.Load() {
			return 0, transport.ErrBusy
		}
		return len(frames), nil
	}
	q := &e.nics[0].queue
	a, b := descTo(1, "a"), descTo(1, "b")
	if err := p.PostSend(a, b); err != nil {
		t.Fatal(err)
	}
	if !q.remove(a) || q.remove(a) {
		t.Error("want what waits removed, once")
	}
	full.Store(false)
	q.retry()
	if !b.Done() || b.Err() != nil || q.remove(b) {
		t.Errorf("the other: done %v, %v; want it sent, and not removed", b.Done(), b.Err())
	}
	q.mu.Lock() // the timer's retry may come now, too
	lanes := len(q.lanes)
	q.mu.Unlock()
	if a.Done() || q.count.Load() != 0 || lanes != 0 {
		t.Errorf("removed: done %v; %d wait in %d lanes", a.Done(), q.count.Load(), lanes)
	}
}

// More descriptors than one batch, by two links in turn: each goes by its own link, in order, and a
// batch has no more than sendBatch of one link.
func TestPostSend_ByTheirOwnLinks(t *testing.T) {
	_, p, links, _ := openScripts(t, 2)
	var got [2][]string
	calls := 0
	for nic := range links {
		links[nic].send = func(frames []transport.Frame) (int, error) {
			calls++
			if len(frames) > sendBatch {
				t.Errorf("%d frames at once", len(frames))
			}
			for _, f := range frames {
				got[nic] = append(got[nic], string(f.Payload[HeaderLen:]))
			}
			return len(frames), nil
		}
	}
	var want [2][]string
	var ds []*SendDesc
	batches := 0
	for i, run := range []int{1, 1, sendBatch, sendBatch + 1, 3*sendBatch - 1, 1} {
		batches += (run + sendBatch - 1) / sendBatch
		for range run {
			d := descTo(1, fmt.Sprint(len(ds)))
			d.NIC = i % 2
			ds, want[i%2] = append(ds, d), append(want[i%2], fmt.Sprint(len(ds)))
		}
	}
	if err := p.PostSend(ds...); err != nil {
		t.Fatal(err)
	}
	if calls != batches {
		t.Errorf("%d calls of the links, want %d: each takes a batch", calls, batches)
	}
	for nic := range links {
		if !slices.Equal(got[nic], want[nic]) {
			t.Errorf("link %d sent %v, want %v", nic, got[nic], want[nic])
		}
	}
}

// TrySendInPlace takes a batch at once, and says how many; the messages before one that is too long
// go.
func TestTrySendInPlace_Batch(t *testing.T) {
	e, p, links, _ := openScripts(t, 1)
	sent := 0
	links[0].send = func(frames []transport.Frame) (int, error) { sent += len(frames); return len(frames), nil }
	to := To(Addr{Node: 1, Port: 1})
	var bs [][]byte
	for range sendBatch + 5 {
		bs = append(bs, make([]byte, e.Headroom()+3))
	}
	for _, n := range []int{1, sendBatch - 1, sendBatch, sendBatch + 1, sendBatch + 5} {
		sent = 0
		if got, err := p.TrySendInPlace(0, to, bs[:n]...); err != nil || got != min(n, 64) || sent != got {
			t.Errorf("%d messages: %d taken, %d sent, %v", n, got, sent, err)
		}
	}
	long := make([]byte, e.Headroom()+e.MaxPayload()+1)
	if n, err := p.TrySendInPlace(0, to, bs[0], bs[1], long, bs[2]); n != 2 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("the third is too long: %d, %v", n, err)
	}
	if n, err := p.TrySendInPlace(0, to, long); n != 0 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("too long: %d, %v", n, err)
	}
	if n, err := p.TrySendInPlace(0, to, long[:len(long)-1]); n != 1 || err != nil {
		t.Errorf("the longest: %d, %v", n, err)
	}
	if n, err := p.TrySendInPlace(0, To(Addr{Node: 9}), bs[0]); n != 0 || !errors.Is(err, ErrUnknownNode) {
		t.Errorf("unknown node: %d, %v", n, err)
	}
	if n, err := p.TrySendInPlace(1, to, bs[0]); n != 0 || err == nil {
		t.Errorf("a link that there is not: %d, %v", n, err)
	}
}

// A drain may name a node twice, and the node may leave the table meanwhile.
func TestDrain_NodesTwiceAndGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := twoLinks(t)
		nodes := []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}
		e, err := Open(Config{Spin: -1, Nodes: nodes}, x)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		o, err := Open(Config{Spin: -1, Node: 1}, y)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		to := To(Addr{Node: 1, Port: 1})
		if err := e.Drain(t.Context(), func() error {
			if err := p.TrySend(0, to, nil); !errors.Is(err, transport.ErrBusy) {
				t.Errorf("during the drain: %v", err)
			}
			return nil
		}, 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := p.TrySend(0, to, nil); err != nil || e.nics[0].queue.held != 0 {
			t.Errorf("after it: %v, %d lanes are held", err, e.nics[0].queue.held)
		}
		if err := e.Drain(t.Context(), func() error { return e.SetNodes(nil) }, 1); err != nil {
			t.Fatal(err)
		}
		if err := e.SetNodes(nodes); err != nil {
			t.Fatal(err)
		}
		if err := p.TrySend(0, to, nil); err != nil {
			t.Errorf("to a node that was gone for a while: %v", err)
		}
	})
}

// The nodes of a drain are the caller's slice again once its change runs: sends go on to those that
// were held.
func TestDrain_ChangeUsesTheSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := twoLinks(t)
		e, err := Open(Config{Spin: -1, Nodes: []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}}, x)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		o, err := Open(Config{Spin: -1, Node: 1}, y)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes := []NodeID{1}
		if err := e.Drain(t.Context(), func() error { nodes[0] = 2; return nil }, nodes...); err != nil {
			t.Fatal(err)
		}
		if err := p.TrySend(0, To(Addr{Node: 1, Port: 1}), nil); err != nil || e.nics[0].queue.held != 0 {
			t.Errorf("behind it: %v, %d lanes are held", err, e.nics[0].queue.held)
		}
	})
}

// A descriptor that was never posted holds nobody up.
func TestWait_OfWhatWasNeverPosted(t *testing.T) {
	if err := new(SendDesc).Wait(t.Context()); err != nil {
		t.Errorf("send descriptor: %v", err)
	}
	if err := new(RecvDesc).Wait(t.Context()); err != nil {
		t.Errorf("receive descriptor: %v", err)
	}
}

// A receive descriptor that Cancel has taken back ends who waits for it, and holds nobody up later;
// nor is a message taken for its own.
func TestWait_OfWhatWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _, others := openScripts(t, 1)
		defer e.Close()
		d := &RecvDesc{Buf: make([]byte, 10), N: 7}
		if err := p.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waited := make(chan error, 1)
		go func() { waited <- d.Wait(ctx) }()
		synctest.Wait()
		if !d.Cancel() || d.Cancel() {
			t.Error("Cancel should take the descriptor back once")
		}
		for call, err := range map[string]error{"a Wait before": <-waited, "a Wait behind": d.Wait(ctx), "Err": d.Err()} {
			if !errors.Is(err, context.Canceled) || !d.Done() || d.N != 0 {
				t.Errorf("%s: %v, done %v, %d bytes", call, err, d.Done(), d.N)
			}
		}
		sendRaw(t, others[0], e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 1}, []byte("hello"))
		if err := p.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		for e.Progress(); !d.Done(); e.Progress() {
		}
		if err := d.Wait(ctx); err != nil || string(d.Buf[:d.N]) != "hello" {
			t.Errorf("posted again: %q, %v", d.Buf[:d.N], err)
		}
	})
}

// A receive descriptor into which a message is just being filled is posted still.
func TestPostRecv_WhileAMessageIsFilledIn(t *testing.T) {
	_, p, _, _ := openScripts(t, 1)
	d := &RecvDesc{Buf: make([]byte, 10)}
	for range 2 {
		if err := p.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock() // as place begins
		taken := p.posted.PopFront()
		p.mu.Unlock()
		if taken != d || d.Cancel() || d.Done() {
			t.Errorf("Cancel has taken a descriptor back that is just being filled; done: %v", d.Done())
		}
		if err := p.PostRecv(d); !errors.Is(err, ErrPosted) {
			t.Errorf("PostRecv: %v, want ErrPosted", err)
		}
		d.completion.Complete(d.fill(&Message{Payload: []byte("whole")}))
		if err := d.Wait(t.Context()); err != nil || string(d.Buf[:d.N]) != "whole" {
			t.Errorf("received %q, %v", d.Buf[:d.N], err)
		}
	}
}

// A descriptor that PostSend has not posted, as another one cannot be sent, is not waited for.
func TestWait_OfWhatWasRefused(t *testing.T) {
	_, p, _, _ := openScripts(t, 1)
	good, unknown := descTo(1, "a"), descTo(9, "b")
	if err := p.PostSend(good, unknown); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("PostSend: %v, want ErrUnknownNode", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range []*SendDesc{good, unknown} {
		if err := d.Wait(ctx); err != nil || d.Done() {
			t.Errorf("to %v: %v, done %v, want that nothing is waited for", d.To, err, d.Done())
		}
	}
}

// A message without a destination is refused. It is not sent to all, where each would drop it.
func TestSend_ToNobody(t *testing.T) {
	_, p, links, _ := openScripts(t, 1)
	links[0].send = func(frames []transport.Frame) (int, error) {
		t.Errorf("%d frames were sent, the first to %v", len(frames), frames[0].Dst)
		return len(frames), nil
	}
	_, inPlace := p.TrySendInPlace(0, Dest{}, make([]byte, p.e.Headroom()+1))
	_, frame := p.AppendFrame(nil, 0, Dest{}, []byte("a"))
	for call, err := range map[string]error{
		"SendVia":        p.SendVia(t.Context(), 0, Dest{}, []byte("a")),
		"TrySend":        p.TrySend(0, Dest{}, []byte("a")),
		"TrySendInPlace": inPlace,
		"PostSend":       p.PostSend(&SendDesc{Payload: []byte("a")}),
		"AppendFrame":    frame,
	} {
		if !errors.Is(err, errNobody) {
			t.Errorf("%s: %v, want that there is no destination", call, err)
		}
	}
}

// The frames of a batch, with their headers before them, lie side by side in memory: tagged or not,
// with and without keys. Where batches become longer, a few are elsewhere.
func TestPostSend_SideBySide(t *testing.T) {
	key := []keyring.Key{{1, 0xff}}
	tagged, err := vlan.Fixed(transport.Tag{VID: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []*keyring.Ring{nil, {Keys: key}, {Keys: key, Encrypt: true}} {
		for _, router := range []vlan.Router{vlan.Untagged, tagged} {
			synctest.Test(t, func(t *testing.T) { postsSideBySide(t, keys, router) })
		}
	}
}

func postsSideBySide(t *testing.T, keys *keyring.Ring, router vlan.Router) {
	t.Helper()
	_, p, links, _ := openScripts(t, 1, func(c *Config) { c.Keys, c.Router = keys, router })
	synctest.Wait() // with keys, the nodes meet
	var ds []*SendDesc
	for i := range sendBatch {
		ds = append(ds, descTo(1, strings.Repeat(string(rune('0'+i)), p.e.MaxPayload()-i)))
	}
	var sent, gaps int
	links[0].send = func(frames []transport.Frame) (int, error) {
		if len(frames) == 1 {
			return 1, nil // likewise
		}
		for i := range frames {
			f := &frames[i]
			if want := ds[sent].Payload; keys == nil && string(f.Payload[HeaderLen:]) != string(want) {
				t.Errorf("frame %d is %.20q, want %.20q", sent, f.Payload[HeaderLen:], want)
			}
			if i > 0 && !beside(&frames[i-1], f) {
				gaps++
			}
			sent++
		}
		return len(frames), nil
	}
	for _, most := range []int{7, 1, 0} {
		sent, gaps = 0, 0
		if err := p.PostSend(ds...); err != nil {
			t.Fatal(err)
		}
		if sent != len(ds) || gaps > most {
			t.Errorf("keys %v, %v: %d frames, %d apart, want %d, at most %d apart", keys, router, sent, gaps, len(ds), most)
		}
	}
}

// beside reports whether a frame's header goes just behind the payload of another one.
func beside(a, b *transport.Frame) bool {
	n := len(a.Payload)
	return len(b.Headroom) == b.HeaderLen() && cap(a.Payload) > n && &a.Payload[:n+1][n] == &b.Headroom[0]
}
