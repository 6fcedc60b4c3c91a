package mcd_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// roaming is a link whose stations may move: it keeps what it was told to be authentic, and to answer.
type roaming struct {
	transport.Link
	mu       sync.Mutex
	heard    []string
	proofs   []string
	contacts uint64 // contact frames that were sent
	answers  uint64 // those that answer a frame
	astray   uint64 // those that go elsewhere than that frame came from

	moved atomic.Bool // since Roamed was called
}

func (l *roaming) Unwrap() transport.Link                     { return l.Link }
func (l *roaming) Authenticates(int)                          {}
func (l *roaming) Roamed() bool                               { return l.moved.Swap(false) }
func (l *roaming) Departure(*transport.Frame) transport.Place { return transport.Place{} }
func (l *roaming) CameFrom(*transport.Frame) transport.Place  { return transport.Place{} }
func (l *roaming) Introduced([]byte)                          {}
func (l *roaming) Requests() []transport.Request              { return nil }

func (l *roaming) Answered(f *transport.Frame, _ bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proofs = append(l.proofs, whatIs(f))
	return true
}

func (l *roaming) Authentic(f *transport.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if what := whatIs(f); what != "challenge" && what != "response" { // of these there are more or fewer
		l.heard = append(l.heard, what)
	}
}

// whatIs is a message's text, or says what a contact frame is.
func whatIs(f *transport.Frame) string {
	var h wire.Header
	var a wire.Auth
	var body wire.ContactBody
	switch {
	case wire.ParseAuth(f.Payload, &h, &a) != wire.OK:
		return "not a frame of ours"
	case h.Kind != wire.Contact:
		return string(h.Payload)
	case body.Parse(h.Payload) && body.Has(wire.ContactResponse):
		return "response"
	}
	return "challenge"
}

func (l *roaming) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	for i := range frames {
		if wire.Kind(frames[i].Payload[0]&0x0f) == wire.Contact {
			l.contacts++
		}
		if to := frames[i].Answers; to != nil {
			l.answers++
			if frames[i].Dst != to.Src {
				l.astray++
			}
		}
	}
	l.mu.Unlock()
	return l.Link.Send(frames)
}

// silenced is a link that loses what is sent until it is let go.
type silenced struct {
	transport.Link
	speaks atomic.Bool
}

func (l *silenced) Unwrap() transport.Link { return l.Link }

func (l *silenced) Send(frames []transport.Frame) (int, error) {
	if !l.speaks.Load() {
		return len(frames), nil
	}
	return l.Link.Send(frames)
}

// A node whose link has moved sends a probe to each of the others, a few times, and then no more.
func TestKeys_WhoHasMovedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attach := oneSwitch(t)
		nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}},
			{ID: 2, MACs: []transport.MAC{mac(3)}}}
		mover := &roaming{Link: attach(mac(1))}
		var heard [3]atomic.Int32
		for k, l := range []transport.Link{mover, attach(mac(2)), attach(mac(3))} {
			e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1, Keys: ring(1, false)}, l)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			defer e.WatchProbes(func(p *mcd.Probe) {
				if !p.Reply {
					heard[k].Add(1)
				}
			})()
		}
		for _, moved := range []bool{false, true, false} {
			mover.moved.Store(moved)
			time.Sleep(time.Minute)
			for k := range heard {
				want := int32(0)
				if moved && k > 0 {
					want = 3
				}
				if got := heard[k].Swap(0); got != want {
					t.Errorf("moved %v: node %d heard %d probes, want %d", moved, k, got, want)
				}
			}
		}
	})
}

// The link is told of each message that a station has sent, be it kept at first. That the station is
// where one came from is proved by the answer to what it was asked just now, and by nothing recorded.
func TestKeys_WhatMovesAStation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attach := oneSwitch(t)
		stranger := attach(mac(99))
		defer stranger.Close()
		nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}}}
		var mu sync.Mutex
		var recorded []transport.Frame
		quiet := [2]*silenced{{Link: attach(mac(1))}, {Link: &frameRecorder{Link: attach(mac(2)), mu: &mu, frames: &recorded}}}
		there := &roaming{Link: quiet[0]}
		var ports [2]*mcd.Port
		for k, l := range []transport.Link{there, quiet[1]} {
			e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1, Keys: ring(1, false)}, l)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ports[k] = port(t, e, 1)
		}
		time.Sleep(10 * time.Second) // what they asked all nodes when they opened was lost
		proofs := func(heard []string, want ...string) {
			t.Helper()
			synctest.Wait()
			there.mu.Lock()
			defer there.mu.Unlock()
			if !slices.Equal(there.heard, heard) || !slices.Equal(there.proofs, want) {
				t.Errorf("heard %q, and proved by %q; want %q, %q", there.heard, there.proofs, heard, want)
			}
			there.heard, there.proofs = nil, nil
		}
		quiet[1].speaks.Store(true)
		send(t, ports[1], ports[0].Addr(), []byte("one"))
		proofs([]string{"one"})     // it is kept, and what asks its sender is lost
		quiet[0].speaks.Store(true) // until it is repeated
		expect(t, ports[0], ports[1].Addr(), "one")
		proofs(nil, "response")
		send(t, ports[1], ports[0].Addr(), []byte("two"))
		expect(t, ports[0], ports[1].Addr(), "two")
		proofs([]string{"two"})
		time.Sleep(3 * time.Second) // nothing is asked any more
		mu.Lock()
		again := slices.Clone(recorded)
		mu.Unlock()
		if n, err := stranger.Send(again); n < 3 || err != nil { // at least a response and two messages
			t.Fatal(n, err)
		}
		time.Sleep(3 * time.Second)
		proofs(nil)
		counted := ports[0].Endpoint().Counters().TxContacts
		there.mu.Lock()
		defer there.mu.Unlock()
		if there.answers == 0 || there.astray > 0 || counted != there.contacts {
			t.Errorf("%d contact frames, of which %d answer a frame, %d of these astray; %d are counted",
				there.contacts, there.answers, there.astray, counted)
		}
	})
}
