package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A node that is called just before the sweep ends its probing is probed on: its death is missed.
func TestUnexpect_CalledMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var links []*fault.Link
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, inner transport.Link) transport.Link {
				l, err := fault.New(inner, rand.New(rand.NewPCG(1, 1)), fault.Config{})
				if err != nil {
					t.Fatal(err)
				}
				links = append(links, l)
				return l
			},
		})
		var nodes []*Domain
		for _, ep := range eps {
			d, err := Open(ep, Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			nodes = append(nodes, d)
		}
		wait := func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }
		if _, err := nodes[1].Serve("wait", ServerConfig{Handler: wait}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error)
		go func() { _, err := nodes[0].Call(ctx, 1, "wait", nil); result <- err }()
		time.Sleep(time.Minute)
		nodes[0].mu.Lock()
		p := nodes[0].layer.Node(1)
		nodes[0].mu.Unlock()
		nodes[0].unexpect(p)
		links[1].Cut(true)
		if err := <-result; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
	})
}

// openTwo opens two nodes, and returns the first one's domain and what counts its messages. Both
// serve "wait", which takes as long as its caller waits.
func openTwo(t *testing.T) (d *Domain, sent func() uint64) {
	t.Helper()
	eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	for _, ep := range slices.Backward(eps) {
		opened, err := Open(ep, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		wait := func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }
		if _, err := opened.Serve("wait", ServerConfig{Handler: wait}); err != nil {
			t.Fatal(err)
		}
		d = opened
	}
	return d, func() uint64 { return eps[0].Counters().TxMessages }
}

// holdDomain holds the lock of the domain below until release.
func holdDomain(t *testing.T, d *Domain) (release func()) {
	t.Helper()
	held, end := make(chan bool), make(chan bool)
	h, err := d.layer.Domain.Handle(2, memfifo.HandlerConfig{Public: true, Record: func(memfifo.Sender, []byte) {
		held <- true
		<-end
	}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.layer.Domain.Remote(h.Key()).Push(t.Context(), nil) }()
	<-held
	return func() { close(end) }
}

// wantNoFrames fails a test where a node is probed still, some time after the last call.
func wantNoFrames(t *testing.T, sent func() uint64) {
	t.Helper()
	time.Sleep(3 * memfifo.DefaultPeerTimeout)
	before := sent()
	time.Sleep(time.Minute)
	if n := sent() - before; n > 0 {
		t.Errorf("%d frames in a minute without calls", n)
	}
}

// A node that is found down while a call has it probed is not probed for ever.
func TestExpect_DownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sent := openTwo(t)
		release := holdDomain(t, d)
		called := make(chan error)
		go func() { _, err := d.Call(t.Context(), 1, "x", nil); called <- err }()
		for begun := false; !begun; runtime.Gosched() {
			d.mu.Lock()
			begun = len(d.pending) > 0
			d.mu.Unlock()
		}
		d.down(&memfifo.PeerDownError{Node: 1, Reason: memfifo.Restarted})
		release()
		if err := <-called; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		wantNoFrames(t, sent)
	})
}

// A node that is called while the sweep ends its probing, and found down before it is probed again,
// is not probed for ever.
func TestUnexpect_CalledAndDownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sent := openTwo(t)
		if _, err := d.Call(t.Context(), 1, "x", nil); !errors.Is(err, ErrNoService) {
			t.Fatal(err)
		}
		d.mu.Lock()
		p := d.layer.Node(1)
		p.Expected = true // called again
		done := make(chan bool)
		go func() { d.unexpect(p); close(done) }()
		for range 10_000 { // until it has ended the probing, and waits for d.mu
			runtime.Gosched()
		}
		release := holdDomain(t, d)
		d.mu.Unlock()
		for range 10_000 { // until it has seen the call, and waits for the domain's lock
			runtime.Gosched()
		}
		d.down(&memfifo.PeerDownError{Node: 1, Reason: memfifo.Restarted})
		release()
		<-done
		wantNoFrames(t, sent)
	})
}
