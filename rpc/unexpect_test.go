package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
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

// A node that is found down while a call has it probed is not probed for ever.
func TestExpect_DownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		var nodes []*Domain
		for _, ep := range eps {
			d, err := Open(ep, Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			nodes = append(nodes, d)
		}
		d := nodes[0]
		held, release := make(chan bool), make(chan bool)
		_, err := d.layer.Domain.Handle(2, memfifo.HandlerConfig{Public: true, Record: func(memfifo.Sender, []byte) {
			held <- true
			<-release
		}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = d.layer.Domain.Remote(memfifo.PublicKey(0, 2)).Push(t.Context(), nil) }()
		<-held // the domain's lock
		called := make(chan error)
		go func() { _, err := d.Call(t.Context(), 1, "x", nil); called <- err }()
		for begun := false; !begun; runtime.Gosched() {
			d.mu.Lock()
			begun = len(d.pending) > 0
			d.mu.Unlock()
		}
		d.down(&memfifo.PeerDownError{Node: 1, Reason: memfifo.Restarted})
		release <- true
		if err := <-called; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		before := eps[0].Counters().TxMessages
		time.Sleep(time.Minute)
		if n := eps[0].Counters().TxMessages - before; n > 0 {
			t.Errorf("%d frames in a minute without calls", n)
		}
	})
}
