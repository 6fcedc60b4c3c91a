package auth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// jumbo is the payload of the longest frame, where they are 9,000 bytes long.
var jumbo = strings.Repeat("x", 8952)

// lives are recorded frames of former incarnations of address 1, each as many as are kept of one:
// long ones, and at the end some short ones.
func lives(t *testing.T, n int, to *node, short int) (recorded [][]wireFrame) {
	t.Helper()
	for i := range n {
		old := newNode(t, fmt.Sprint("life ", i), 1, false, secret(1))
		var frames []wireFrame
		for k := range maxHeld {
			text := jumbo
			if k >= maxHeld-short {
				text = jumbo[:100]
			}
			frames = append(frames, old.send(to.mac, text))
		}
		recorded = append(recorded, frames)
	}
	return recorded
}

// Of a node that lives the frames of thirty former lives were recorded, and are sent again whenever
// they would be kept: 761 a second, which is three times what there is room for. The first messages
// of new nodes arrive all the same, and what the known node sends.
func TestHeld_RecordedLivesLeaveRoom(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "known"))
	want := []string{"known"}
	recorded := lives(t, 30, b, 8) // the short ones fill what the long ones leave
	const again = askLife + silence + 20*time.Millisecond
	next := make([]time.Duration, len(recorded))
	for i := range next {
		next[i] = again * time.Duration(i) / time.Duration(len(next))
	}
	for at := time.Duration(0); at < 6*time.Second; at += 10 * time.Millisecond {
		for i, frames := range recorded {
			if at < next[i] {
				continue
			}
			next[i] += again
			for _, f := range frames {
				w.deliver(b.receive(w.now, f)...)
			}
		}
		if at >= 3*time.Second && at%(100*time.Millisecond) == 0 {
			text := fmt.Sprintf("first at %-190v", at)
			n := newNodeAt(t, w.now.Add(-OpeningTime), text, byte(10+len(want)), false, secret(1))
			w.nodes = []*node{a, b, n}
			w.deliver(n.send(b.mac, text), a.send(b.mac, "a "+text))
			want = append(want, "a "+text, text) // one that is not known is asked first
		}
		w.pass(10 * time.Millisecond)
	}
	slices.Sort(want)
	expectSet(t, b, want...)
	if b.expired == 0 {
		t.Error("nothing was pushed out")
	}
}

// What is kept of a node that lives is there when its answer comes, as long as less than 4 MiB of
// others' frames come before it; and is not pushed out later than then.
func TestHeld_FloodBeforeTheAnswer(t *testing.T) {
	for _, x := range []struct {
		bytes     int // that come before the answer, beside those of the node
		delivered int
	}{{maxHeldBytes - 2*8952, 2}, {maxHeldBytes, 0}} {
		a, b := newNode(t, "a", 3, false, secret(1)), newNode(t, "b", 2, false, secret(1))
		w := newNetwork(a, b)
		recorded := slices.Concat(lives(t, 20, b, 0)...) // 11 MB
		for _, f := range recorded[:5*maxHeld] {
			b.receive(w.now, f)
		}
		answers := b.receive(w.now, a.send(b.mac, jumbo))
		b.receive(w.now, a.send(b.mac, jumbo))
		for n := 0; n+len(jumbo) <= x.bytes; n += len(jumbo) {
			b.receive(w.now, recorded[5*maxHeld+n/len(jumbo)])
		}
		if b.verdicts[Held] != 5*maxHeld+2+x.bytes/len(jumbo) {
			t.Fatalf("verdicts %v", b.verdicts)
		}
		if w.deliver(answers...); len(b.delivered) != x.delivered || b.released != x.delivered {
			t.Errorf("%d bytes come before the answer: %d of 2 messages are delivered, want %d", x.bytes, len(b.delivered), x.delivered)
		}
	}
}

// Forged frames, of which there may be any number, push out nothing; nor does the sender that was
// first, whatever it sends after the others.
func TestHeld_WhoPushesOutNobody(t *testing.T) {
	a, b := newNode(t, "a", 3, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	recorded := lives(t, 9, b, 0)
	first := recorded[0]
	b.receive(w.now, first[0])
	answers := b.receive(w.now, a.send(b.mac, "a"))
	for _, f := range slices.Concat(recorded[1:]...)[:maxHeldBytes/len(jumbo)-1] {
		b.receive(w.now, f)
	}
	if free := maxHeldBytes - b.v.heldBytes; b.expired > 0 || free >= len(jumbo) {
		t.Fatalf("%d have expired, and there is room for %d bytes more", b.expired, free)
	}
	for i := range 1000 {
		f := forge(recorded[8][i%maxHeld], 40)
		f.bytes[16], f.bytes[17] = byte(i), byte(i>>8) // another incarnation each time
		b.receive(w.now, f)
	}
	for _, f := range first[1:] {
		b.receive(w.now, f)
	}
	if b.expired > 0 || b.verdicts[Unanswered] != len(first)-1 {
		t.Errorf("%d have expired, verdicts %v", b.expired, b.verdicts)
	}
	w.deliver(answers...)
	expect(t, b, "a")
}

// A node that is known, and is asked again as another process opens at its address, loses nothing
// meanwhile by recorded frames, however many come.
func TestHeld_OfOneThatIsKnown(t *testing.T) {
	a, b := newNode(t, "a", 3, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "known"))
	recorded := slices.Concat(lives(t, 30, b, 0)...)
	for _, f := range recorded[:1000] {
		b.receive(w.now, f)
	}
	b.v.senders[a.sealer.incarnation].state = suspended
	answers := b.receive(w.now, a.send(b.mac, "one"))
	for _, f := range recorded[1000:] {
		b.receive(w.now, f)
	}
	b.receive(w.now, a.send(b.mac, "two"))
	if len(b.delivered) != 1 {
		t.Fatalf("delivered %d", len(b.delivered))
	}
	w.deliver(answers...)
	expect(t, b, "known", "one", "two")
}

// What was kept and is sealed with a key that is removed is not delivered any more, and counts as
// expired; what its sender has sealed with another key is.
func TestSetKeys_WhatWasKeptOfARemovedKey(t *testing.T) {
	both := newNode(t, "both", 1, false, secret(1), secret(2))
	old, b := newNode(t, "old", 3, false, secret(1)), newNode(t, "b", 2, false, secret(1), secret(2))
	w := newNetwork(both, old, b)
	b.receive(w.now, both.send(b.mac, "by the first key"))
	both.key = both.v.keys[1]
	both.sealer = NewSealer(both.key, both.sealer.incarnation, both.mac, false)
	answers := b.receive(w.now, both.send(b.mac, "by the second"))
	b.receive(w.now, old.send(b.mac, "another one's"))
	answers = append(answers, b.seal(w.now, b.v.Ask(w.now, both.mac, nil))...)
	b.setKeys(w.now, secret(2))
	if n := b.v.Expired(); n != 2 || b.v.heldBytes != len("by the second") || b.v.holders.Len() != 1 {
		t.Fatalf("%d have expired, want 2; %d bytes of %d senders are kept", n, b.v.heldBytes, b.v.holders.Len())
	}
	b.expired = 2
	w.deliver(answers...)
	w.pass(2 * askLife)
	expect(t, b, "by the second")
}

// What is kept when an endpoint closes has expired.
func TestDropHeld_IsCounted(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	b.receive(w.now, a.send(b.mac, "one"))
	b.receive(w.now, a.send(b.mac, "two"))
	b.v.DropHeld()
	if n := b.v.Expired(); n != 2 || b.v.heldBytes != 0 || b.v.holders.Len() != 0 {
		t.Errorf("%d have expired, want 2; %d bytes of %d senders are kept", n, b.v.heldBytes, b.v.holders.Len())
	}
}
