package auth

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
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

// Frames that wait for their senders' answers take 4 MiB at most. What is kept of those that were
// first goes for others.
func TestHeld_Bytes(t *testing.T) {
	b := newNode(t, "b", 200, false, secret(1))
	w := newNetwork(b)
	text := strings.Repeat("x", 1400)
	var all []*node
	for i := range byte(60) { // 64 frames each are 5.1 MiB
		a := newNode(t, "a"+string(rune('0'+i)), 1+i, false, secret(1))
		all = append(all, a)
		for range maxHeld {
			b.receive(w.now, a.send(b.mac, text))
		}
	}
	if n := b.v.heldBytes; n > 4<<20 || n <= 4<<20-maxHeld*len(text) {
		t.Errorf("%d bytes are kept", n)
	}
	const fit = 4 << 20 / (maxHeld * 1400) // senders
	for i, a := range all {
		if n, want := len(b.v.senders[a.sealer.incarnation].held), maxHeld; (i < len(all)-fit) != (n == 0) || n > 0 && n != want {
			t.Errorf("of sender %d of %d, of which %d have room, %d frames are kept", i, len(all), fit, n)
		}
	}
	if want := (len(all) - fit) * maxHeld; b.expired != want || b.verdicts[Held] != len(all)*maxHeld {
		t.Errorf("%d of %d frames have expired, want %d", b.expired, b.verdicts[Held], want)
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

// A checkpoint is due 4 ms after the last one, not before; 512 of them are kept: a floor is asked for
// of times up to 2 s back.
func TestHistory_Reach(t *testing.T) {
	if Due(4*time.Millisecond-1) || !Due(4*time.Millisecond) {
		t.Error("a checkpoint is not due after 4 ms")
	}
	var h History
	for i := range 700 {
		h.Add(start.Add(time.Duration(i)*4*time.Millisecond), uint64(i))
	}
	now := start.Add(700 * 4 * time.Millisecond)
	if got := h.Floor(now, math.MaxUint64, 700); got != 700-512 {
		t.Errorf("the floor of all time is %d, want %d", got, 700-512)
	}
	if got := h.Floor(now, uint64(2*time.Second), 700); got != 201 {
		t.Errorf("the floor 2 s ago is %d, want 201", got) // of entry 700-500, and the drift
	}
}

// A response that took longer than 15 ms has a floor that may be too high: a node that has sent
// something is asked again, until half a second has passed since its challenge; one that has sent
// nothing is not.
func TestVerifier_ResponsesThatTakeLong(t *testing.T) {
	for _, x := range []struct {
		after time.Duration
		sent  int // messages of the node that answers
		again bool
	}{
		{15 * time.Millisecond, 1, false},
		{15*time.Millisecond + 1, 1, true},
		{15*time.Millisecond + 1, 0, false},
		{500*time.Millisecond - 1, 1, true},
		{500 * time.Millisecond, 1, false},
	} {
		a, b := newNodeAt(t, start.Add(-time.Second), "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
		for range x.sent {
			a.send(transport.MAC{2, 9, 9, 9, 9, 9}, "to another one, before b was there")
		}
		w := newNetwork(a, b)
		challenge := n0(b.v.seal(w, b, a.mac))
		reply := n0(a.receive(w.now, challenge))
		w.now = w.now.Add(x.after)
		again := b.receive(w.now, reply)
		for _, m := range b.sends {
			if !m.Answer {
				t.Errorf("%+v: %+v goes as the router says, want by the way that the response came", x, m)
			}
		}
		known := b.v.senders[a.sealer.incarnation] != nil
		if known == x.again || !x.again && len(again) > 1 || x.again && len(again) == 0 {
			t.Errorf("%+v: known %v, %d frames", x, known, len(again))
		}
	}
}

// A late response to a challenge to all is answered by a challenge to its sender alone, by the way
// that it came.
func TestVerifier_ResponseToAllThatTakesLong(t *testing.T) {
	a, b := newNodeAt(t, start.Add(-time.Second), "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	a.send(transport.MAC{2, 9, 9, 9, 9, 9}, "to another one, before b was there")
	w := newNetwork(a, b)
	reply := n0(a.receive(w.now, n0(b.v.seal(w, b, transport.Broadcast))))
	w.now = w.now.Add(15*time.Millisecond + 1)
	b.receive(w.now, reply)
	if len(b.sends) == 0 || b.sends[0].Dst != a.mac || !b.sends[0].Answer || b.sends[0].Body.Flags != wire.ContactChallenge {
		t.Errorf("%+v, want a challenge to a", b.sends)
	}
}

// Beyond its budget a challenge is not answered, and triggers a challenge alone of who is not known
// and was not asked.
func TestVerifier_ChallengesBeyondTheBudget(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	again := newNode(t, "a again", 1, false, secret(1)) // at its address
	stranger := newNode(t, "stranger", 3, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	challenge := func(n *node) wireFrame {
		ask := &ask{mac: b.mac, nonce: [16]byte{1}, born: w.now}
		return n0(n.seal(w.now, []Send{n.v.message(w.now, ask)}))
	}
	for b.v.responses.Take(int64(w.now.Since())) {
	}
	if n := len(b.receive(w.now, challenge(a))); n > 0 || b.verdicts[OverBudget] != 1 {
		t.Errorf("a known node beyond its budget: %d frames, verdicts %v", n, b.verdicts)
	}
	w.deliver(b.seal(w.now, b.v.challenge(w.now, a.mac, nil, nil))...) // which a answers
	for b.v.toUnknown.Take(int64(w.now.Since())) {
	}
	before := b.v.asks[a.mac]
	if n := len(b.receive(w.now, challenge(again))); n > 0 || before == nil || b.v.asks[a.mac] != before {
		t.Errorf("an address that is asked: %d frames; the challenge is open still: %v", n, b.v.asks[a.mac] == before)
	}
	if n := len(b.receive(w.now, challenge(stranger))); n != 1 || b.v.asks[stranger.mac] == nil || !b.sends[0].Answer {
		t.Errorf("a stranger: %d frames, want a challenge", n)
	}
	if b.receive(w.now, stranger.send(b.mac, "kept")); b.verdicts[Held] != 2 {
		t.Errorf("verdicts %v", b.verdicts)
	}
	other := newNode(t, "other", 4, false, secret(1))
	if n := len(b.receive(w.now, other.send(b.mac, "kept"))); n != 1 || !b.sends[0].Answer {
		t.Errorf("a first message: %+v, want a challenge by the way that it came", b.sends)
	}
	if b.verdicts[OverBudget] != 3 {
		t.Errorf("verdicts %v", b.verdicts)
	}
}

// What a verifier remembers, in figures: docs/security.md reckons with them.
func TestBounds_AreTheDocumentedOnes(t *testing.T) {
	want := bounds{senders: 16384, unproven: 1024, retired: 64, asks: 512, held: 64, heldBytes: 4194304}
	if got := newNode(t, "a", 1, false, secret(1)).v.bounds; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if budgetRate != 2000 || derivationBurst != 1000 || askBurst != 2000 || silence != time.Second || uint64(LastCounter) != 1<<63 {
		t.Error("the budgets are others")
	}
	if n := len(window{}.blocks) * 64; n != 8192 {
		t.Errorf("a window has %d bits, want 8192: there is one for each sender", n)
	}
}

// Who is known is not asked again, until it has to prove itself.
func TestAsk_WhoIsNotKnown(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	if n := len(b.v.Ask(w.now, a.mac, nil)); n != 0 {
		t.Errorf("%d challenges to one that is known", n)
	}
	b.v.senders[a.sealer.incarnation].state = suspended
	if n := len(b.v.Ask(w.now, a.mac, nil)); n != 1 {
		t.Errorf("%d challenges to one that is suspended", n)
	}
}

// A node that has forgotten all senders, as a key came back, does not take the answer to a challenge
// from before: its floor would let in again what was accepted meanwhile.
func TestSetKeys_OpenChallengesAreForgotten(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	challenge := b.v.seal(w, b, a.mac)
	var late []wireFrame
	for _, f := range challenge {
		late = append(late, a.receive(w.now, f)...)
	}
	b.setKeys(w.now, secret(2))
	b.setKeys(w.now, secret(1))
	for _, f := range late {
		b.receive(w.now, f)
	}
	if len(late) != 1 || b.v.senders[a.sealer.incarnation] != nil {
		t.Errorf("%d answers, and it is known by the late one: %v", len(late), b.v.senders[a.sealer.incarnation] != nil)
	}
}

// Frames that no key here can open use up nothing of what is done for strangers.
func TestVerifier_UnknownKeysCostNothing(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	var thief *node
	for n := byte(2); thief == nil || thief.key.id == a.key.id; n++ {
		thief = newNode(t, "thief", 3, false, secret(n))
	}
	w := newNetwork(a, b)
	for _, f := range thief.v.seal(w, thief, b.mac) { // a challenge
		if n := len(b.receive(w.now, f)); n > 0 || b.verdicts[UnknownKey] != 1 {
			t.Errorf("%d answers to a contact frame, verdicts %v", n, b.verdicts)
		}
	}
	for i := range 2 * derivationBurst {
		f := thief.send(b.mac, "sealed with another key")
		f.bytes[16], f.bytes[17] = byte(i), byte(i>>8) // another incarnation each time
		b.receive(w.now, f)
	}
	if n := b.verdicts[UnknownKey]; n != 2*derivationBurst+1 {
		t.Errorf("verdicts %v", b.verdicts)
	}
	w.deliver(a.send(b.mac, "one"))
	expect(t, b, "one")
}

// A challenge that was answered is not repeated, though it stays open.
func TestAsk_AnsweredIsNotRepeated(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	w.deliver(b.seal(w.now, b.v.challenge(w.now, a.mac, nil, nil))...)
	if a.answers != 1 || b.answers != 2 { // the second is of one that was known to be alive
		t.Errorf("%d and %d answers", a.answers, b.answers)
	}
	sent := len(w.recorded)
	if w.pass(time.Second); len(w.recorded) != sent || b.v.asks[a.mac] == nil {
		t.Errorf("%d frames after the answer; the challenge is open: %v", len(w.recorded)-sent, b.v.asks[a.mac] != nil)
	}
}

// A sender that is asked, answers and is asked again, over and over, is listed once.
func TestAwait_ListsASenderOnce(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	for range 100 {
		b.v.senders[a.sealer.incarnation].state = suspended
		w.deliver(a.send(b.mac, "again"))
	}
	if len(b.delivered) != 101 || len(b.v.awaited) > 1 {
		t.Errorf("%d messages of 101; one sender is listed %d times", len(b.delivered), len(b.v.awaited))
	}
}

// Clocks are taken to drift apart by 1 in 1,024, and not by more: what was sent later than that is not
// refused.
func TestHistory_DriftIsBounded(t *testing.T) {
	const age, drift = 1 << 30, 1 << 20 // ns
	for _, c := range []struct {
		checkpoint time.Duration // before now
		floor      uint64
	}{{age - drift + 1, 9}, {age - drift, 9}, {age - drift - 1, 7}} {
		var h History
		h.Add(start.Add(-c.checkpoint), 7)
		if got := h.Floor(start, age, 9); got != c.floor {
			t.Errorf("a checkpoint %v ago, and a time 2^30 ns ago: floor %d, want %d", c.checkpoint, got, c.floor)
		}
	}
}

// What was kept of a sender that is forgotten has expired, and is counted.
func TestForgotten_WhatWasKeptIsCounted(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	b.v.bounds.senders = 2 // itself and a
	b.v.senders[a.sealer.incarnation].state = suspended
	w.nodes = []*node{b} // a is cut off
	w.deliver(a.send(b.mac, "kept"), a.send(b.mac, "kept"))
	b.v.prove(w.now, 77, transport.MAC{2, 1, 0, 0, 0, 7}, 0, nil)
	if n := b.v.Expired(); n != 2 || b.v.senders[a.sealer.incarnation] != nil || b.v.heldBytes != 0 {
		t.Errorf("%d of 2 frames have expired; %d bytes are kept", n, b.v.heldBytes)
	}
	if n := b.v.Expired(); n != 0 {
		t.Errorf("%d have expired a second time", n)
	}
}

// Where a network has a loop, a node's own frames come back to it: it knows itself, also when all
// others are forgotten, and asks nobody.
func TestVerifier_KnowsItself(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		b := newNode(t, "b", 2, false, secret(1))
		now := newNetwork().now
		if forgotten {
			b.setKeys(now, secret(2))
			b.setKeys(now, secret(1))
		}
		if n := len(b.receive(now, b.send(transport.Broadcast, "round and back"))); n != 0 || len(b.v.asks) != 0 {
			t.Errorf("forgotten %v: %d frames, and %d challenges are open, to itself", forgotten, n, len(b.v.asks))
		}
		challenge := n0(b.seal(now, b.v.Ask(now, transport.Broadcast, nil)))
		if n := len(b.receive(now, challenge)); n != 0 || b.verdicts[Replayed] != 1 {
			t.Errorf("forgotten %v: %d answers to its own challenge, verdicts %v", forgotten, n, b.verdicts)
		}
	}
}
