package auth

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// afterTwo is a network a second after a has sent b two frames, which somebody has recorded.
func afterTwo(t *testing.T) (w *network, a, b *node, recorded []wireFrame) {
	t.Helper()
	a, b = newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w = newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"), a.send(b.mac, "two"))
	expect(t, b, "one", "two")
	recorded = slices.Clone(w.recorded)
	w.pass(time.Second)
	return w, a, b, recorded
}

// What a sender sent before its receiver was there is refused also when it comes for the first time
// after the sender has proved to be alive: nothing but the floor tells it from what is late.
func TestVerifier_OldFramesAfterTheProof(t *testing.T) {
	w, a, _, old := afterTwo(t)
	again := newNodeAt(t, w.now, "b again", 2, false, secret(1))
	w.restart(1, again)
	w.pass(OpeningTime) // a checkpoint
	late := a.send(again.mac, "late")
	w.deliver(a.send(again.mac, "live"))
	w.deliver(old...)
	w.deliver(late)
	w.pass(2 * askLife)
	expect(t, again, "live", "late")
}

// What was kept until its sender had answered, and proves to be older than its receiver, has expired,
// and does not count as a replay: docs/wire-format.md.
func TestVerifier_OldFramesBeforeTheProof(t *testing.T) {
	w, _, _, old := afterTwo(t)
	again := newNodeAt(t, w.now, "b again", 2, false, secret(1))
	w.restart(1, again)
	w.pass(OpeningTime)
	w.deliver(old...)
	w.pass(2 * askLife)
	expect(t, again)
	if again.expired != 2 || again.verdicts[Replayed] != 0 {
		t.Errorf("%d have expired, and %d are replays; want 2, and none", again.expired, again.verdicts[Replayed])
	}
}

// A sender that was forgotten, for want of room, proves itself again: what had been accepted of it
// is not accepted a second time.
func TestForgotten_ItsFramesStayRefused(t *testing.T) {
	w, a, b, old := afterTwo(t)
	b.v.bounds.senders = 2 // itself and another one
	b.v.prove(w.now, 77, transport.MAC{2, 1, 0, 0, 0, 7}, 0, nil)
	if b.v.senders[a.sealer.incarnation] != nil {
		t.Fatal("it is not forgotten")
	}
	w.pass(time.Second)
	w.pass(time.Second) // a checkpoint
	b.v.bounds.senders = 3
	w.deliver(a.send(b.mac, "three"))
	w.deliver(old...)
	w.pass(2 * askLife)
	expect(t, b, "one", "two", "three")
}

// The answer to a challenge proves the incarnation alone that has the address from which it comes.
func TestVerifier_AnswerFromAnotherAddress(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	other := newNode(t, "other", 3, false, secret(1))
	w := newNetwork(a, b)
	b.receive(w.now, a.send(b.mac, "kept"))
	challenge := n0(b.v.seal(w, b, other.mac))
	other.sealer = NewSealer(other.key, a.sealer.incarnation, other.mac, false) // who has the key can
	for _, f := range other.receive(w.now, challenge) {
		b.receive(w.now, f)
	}
	if s := b.v.senders[a.sealer.incarnation]; s == nil || s.state != asked || len(b.delivered) != 0 {
		t.Errorf("known by another one's answer: %+v, delivered %v", s, b.delivered)
	}
}
