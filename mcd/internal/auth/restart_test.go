package auth

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// What the caller does with its own memory of a secret afterwards changes no key: frames of senders
// that appear later are opened with the secret as it was.
func TestKey_IsACopy(t *testing.T) {
	given := secret(1)
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, given)
	clear(given)
	forger := newNode(t, "forger", 3, false, given)
	forger.key.id, forger.sealer.key.id = a.key.id, a.key.id
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	expect(t, b, "one")
	if b.receive(w.now, forger.send(b.mac, "sealed with the erased key")); b.verdicts[BadTag] != 1 {
		t.Errorf("verdicts on a forged frame: %v", b.verdicts)
	}
}

func (n *node) setKeys(now monotime.Time, secrets ...[]byte) {
	var keys []*Key
	for _, s := range secrets {
		keys = append(keys, NewKey(s, cluster))
	}
	n.v.SetKeys(now, keys)
	n.key, n.sealer = keys[0], NewSealer(keys[0], n.sealer.incarnation, n.mac, n.sealer.encrypt)
}

// A key that was taken away and is given back does not make its old frames new, and its new frames
// are heard; many other keys may have been valid in between.
func TestVerifier_KeyThatComesBack(t *testing.T) {
	for _, between := range []byte{1, 5, maxRetired + 3} {
		w, a, b, recorded := afterTwo(t)
		for i := range between {
			a.setKeys(w.now, secret(2+i))
			b.setKeys(w.now, secret(2+i))
			if len(b.v.retired) > maxRetired {
				t.Fatalf("%d keys that are not valid are remembered", len(b.v.retired))
			}
		}
		w.pass(time.Second)
		a.setKeys(w.now, secret(1))
		b.setKeys(w.now, secret(1))
		w.pass(OpeningTime)
		w.deliver(recorded...)
		w.pass(2 * askLife)
		expect(t, b, "one", "two")
		w.deliver(a.send(b.mac, "three"))
		expect(t, b, "one", "two", "three")
	}
}

// A node has answered a challenge, and was started again; its answer comes late, when the new one
// has answered the same challenge. The old one's frames stay refused, whether it was known before,
// and whether the challenge was to it alone or to all.
func TestVerifier_AnswerOfAFormerIncarnation(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, toAll := range []bool{false, true} {
			if known && toAll {
				continue // who is asked when this one opens is not known yet
			}
			t.Run(fmt.Sprintf("known %v to all %v", known, toAll), func(t *testing.T) {
				old, b := newNode(t, "old", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
				w := newNetwork(old, b)
				if known {
					w.deliver(old.send(b.mac, "hello"))
				}
				to := old.mac
				if toAll {
					to = transport.Broadcast
				}
				question := b.seal(w.now, b.v.challenge(w.now, to, nil, nil))
				if len(question) != 1 {
					t.Fatalf("%d challenges", len(question))
				}
				answer := old.receive(w.now, question[0])
				late := old.send(b.mac, "late")
				w.nodes = []*node{b}
				fresh := newNodeAt(t, w.now, "new", 1, false, secret(1))
				w.now = w.now.Add(OpeningTime)
				w.deliver(fresh.receive(w.now, question[0])...)
				before := len(b.delivered)
				for _, f := range append(answer, late) {
					b.receive(w.now, f)
				}
				if got := b.delivered[before:]; len(got) > 0 {
					t.Errorf("delivered %v of an incarnation that is gone", got)
				}
				w.nodes = append(w.nodes, fresh)
				w.deliver(fresh.send(b.mac, "live"))
				if got := b.delivered[before:]; len(got) != 1 || got[0] != "live" {
					t.Errorf("delivered %v, want the live message", got)
				}
			})
		}
	}
}

// Clocks of two nodes drift apart. What was sent shortly before the other one was opened stays
// refused, though the sender's clock was too slow meanwhile.
func TestHistory_Drift(t *testing.T) {
	for _, since := range []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour} {
		opened := monotime.At(time.Hour)
		var h History
		h.Add(opened.Add(-time.Minute), 0)
		h.Add(opened.Add(-time.Millisecond), 1) // and then number 2 was sent
		h.Add(opened.Add(OpeningTime), 2)
		slow := since - since/2000 // what the sender's clock says of the time since
		if got := h.Floor(opened.Add(slow).Add(time.Millisecond), uint64(since), 2); got != 2 {
			t.Errorf("after %v the floor is %d, want 2", since, got)
		}
	}
	var same History // a clock that stands: what was sealed in the instant of the opening was sealed before it
	same.Add(monotime.At(time.Hour), 4)
	if got := same.Floor(monotime.At(time.Hour), 0, 9); got != 9 {
		t.Errorf("in the instant of a checkpoint the floor is %d, want that of the last frame", got)
	}
	var h History
	h.Add(monotime.At(time.Hour), 1)
	if got := h.Floor(monotime.At(2*time.Hour), ^uint64(0), 9); got != 1 {
		t.Errorf("for the longest age the floor is %d, want that of the first checkpoint", got)
	}
}

// A node that stands still while it is challenged answers late. A message that it had sent to the
// other one, which was just opened, is kept until it has answered soon.
func TestVerifier_SlowAnswerCostsNoMessage(t *testing.T) {
	a := newNode(t, "a", 1, false, secret(1))
	w := newNetwork(a)
	w.pass(time.Second)
	b := newNodeAt(t, w.now, "b", 2, false, secret(1))
	w.nodes = append(w.nodes, b)
	w.pass(OpeningTime)
	a.history.Add(w.now, a.counter)
	question := b.receive(w.now, a.send(b.mac, "first"))
	w.now = w.now.Add(100 * time.Millisecond) // a stands still
	for _, f := range question {
		w.deliver(a.receive(w.now, f)...)
	}
	w.pass(2 * lastAsk)
	expect(t, b, "first")
}

// A sender that was known, and was silent when it was asked again, has to prove itself; what was
// accepted of it before stays refused. Of one that never proved itself nothing is kept.
func TestVerifier_SilentForAWhile(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	stranger := newNode(t, "stranger", 3, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"), a.send(b.mac, "two"))
	recorded := slices.Clone(w.recorded)
	b.v.senders[a.sealer.incarnation].state = suspended
	w.nodes = []*node{b} // a is cut off
	w.deliver(a.send(b.mac, "kept"), stranger.send(b.mac, "kept"))
	w.pass(askLife + silence)
	if b.expired != 2 || b.v.senders[stranger.sealer.incarnation].sessions != nil {
		t.Errorf("%d of 2 frames expired; keys of a stranger that is silent: %d", b.expired,
			len(b.v.senders[stranger.sealer.incarnation].sessions))
	}
	w.nodes = []*node{a, b}
	w.deliver(a.send(b.mac, "three"))
	w.deliver(recorded...)
	expect(t, b, "one", "two", "three")
}

// As many keys that are not valid any more are remembered as the bound says; with one more, all that
// was accepted is forgotten.
func TestSetKeys_Retired(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	b.v.bounds.retired = 2
	for i, known := range []bool{true, true, false} {
		b.setKeys(w.now, secret(byte(2+i)))
		if is := b.v.senders[a.sealer.incarnation] != nil; is != known {
			t.Errorf("after %d keys are gone, the sender is known: %v", i+1, is)
		}
	}
}

// Two processes at one address begin at the same time: one challenge is answered by both, and the
// second is asked again, so that the first message of each is delivered.
func TestVerifier_TwoThatBeginAtOneAddress(t *testing.T) {
	one, two, b := newNode(t, "one", 1, false, secret(1)), newNode(t, "two", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(one, two, b)
	for _, n := range []*node{one, two} { // they know b, and do not ask
		n.v.prove(w.now, b.sealer.incarnation, b.mac, 0, nil)
	}
	w.deliver(one.send(b.mac, "of one"), two.send(b.mac, "of two"))
	w.pass(firstAsk / 2)
	expectSet(t, b, "of one", "of two")
}
