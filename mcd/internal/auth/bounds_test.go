package auth

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// A challenge that nobody answers is repeated after 5 ms, then after twice as long each time, up to
// 80 ms, until 1.5 s are over: with the first one 22 times, as limits.go reckons. All end together.
func TestAsk_IsRepeated(t *testing.T) {
	b := newNode(t, "b", 9, false, secret(1))
	for i := range byte(3) {
		b.v.Ask(start, transport.MAC{2, 9, 9, 9, 9, i}, nil)
	}
	var times []time.Duration
	for len(b.v.asks) > 0 {
		at, ok := b.v.Deadline()
		if !ok {
			t.Fatalf("%d challenges are open, and nothing is due", len(b.v.asks))
		}
		if n := len(b.v.Advance(at, nil)); n == 3 {
			times = append(times, at.Sub(start))
		} else if n > 0 || at.Sub(start) != 1500*time.Millisecond || len(b.v.asks) > 0 {
			t.Fatalf("%v: %d challenges are repeated of 3, %d are open", at.Sub(start), n, len(b.v.asks))
		}
	}
	want := []time.Duration{5, 15, 35, 75}
	for at := time.Duration(155); at < 1500; at += 80 {
		want = append(want, at)
	}
	for i := range want {
		if want[i] *= time.Millisecond; i >= len(times) || times[i] != want[i] {
			t.Fatalf("repeated at %v, want %v", times, want)
		}
	}
	if len(times) != len(want) || len(times) != 21 {
		t.Errorf("repeated %d times, want %d", len(times), len(want))
	}
}

// Frames that wait for their senders' answers take 4 MiB at most.
func TestHeld_Bytes(t *testing.T) {
	b := newNode(t, "b", 200, false, secret(1))
	w := newNetwork(b)
	text := strings.Repeat("x", 1400)
	for i := range byte(60) { // 64 frames each are 5.1 MiB
		a := newNode(t, "a"+string(rune('0'+i)), 1+i, false, secret(1))
		for range maxHeld {
			b.receive(w.now, a.send(b.mac, text))
		}
	}
	if n := b.v.heldBytes; n > 4<<20 || n <= 4<<20-len(text) {
		t.Errorf("%d bytes are kept", n)
	}
}

// Of the senders that are known the one that was silent for longest is forgotten first, one that is
// suspended before all; it has to prove itself again, also if its frame was the last one.
func TestForgotten_TheOneThatWasSilentForLongest(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	prove := func(incarnation uint64, mac uint32) {
		b.v.prove(w.now, incarnation, transport.MAC{2, 1, byte(mac >> 24), byte(mac >> 16), byte(mac >> 8), byte(mac)}, 0, nil)
	}
	const silent = math.MaxUint64
	prove(silent, 0)
	w.deliver(a.send(b.mac, "one"))
	w.deliver(a.send(b.mac, "two"))         // now it is known
	b.v.frames++                            // somebody else's
	for i := range uint32(maxSenders - 3) { // b, a and the silent one are there
		prove(uint64(i+1), i+1)
	}
	prove(1<<20, 1<<20)
	if b.v.senders[silent] != nil || b.v.senders[a.sealer.incarnation] == nil {
		t.Error("another one was forgotten than the one that was silent for longest")
	}
	w.nodes = []*node{b}
	w.deliver(a.send(b.mac, "three"))
	expect(t, b, "one", "two", "three")
	b.v.senders[a.sealer.incarnation].seen = 0
	prove(1<<21, 1<<21)
	if b.v.senders[a.sealer.incarnation] != nil {
		t.Error("the one that was silent for longest is known")
	}
	w.deliver(a.send(b.mac, "four"))
	expect(t, b, "one", "two", "three")
	prove(1<<22, 1<<22)
	prove(1<<22+1, 1<<22)
	prove(1<<23, 1<<23)
	if b.v.senders[1<<22] != nil || b.v.senders[1<<22+1] == nil {
		t.Error("the suspended one of an address is to be forgotten")
	}
	b.checkBounds()
}

// A checkpoint is due at its interval, not behind it.
func TestDue(t *testing.T) {
	if Due(checkpointInterval-1) || !Due(checkpointInterval) {
		t.Error("not due at the interval")
	}
}
