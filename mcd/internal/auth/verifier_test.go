package auth

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// The first message to a node that knows nothing of its sender arrives, for three frames more; both
// know each other then.
func TestVerifier_FirstContact(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		a, b := newNode(t, "a", 1, encrypt, secret(1)), newNode(t, "b", 2, encrypt, secret(1))
		w := newNetwork(a, b)
		w.deliver(a.send(b.mac, "one"))
		expect(t, b, "one")
		if len(w.recorded) != 4 {
			t.Errorf("%d frames, want the message and 3 of contact", len(w.recorded))
		}
		w.deliver(b.send(a.mac, "answer"), a.send(b.mac, "two"))
		expect(t, a, "answer")
		expect(t, b, "one", "two")
		if len(w.recorded) != 6 {
			t.Errorf("%d frames, want no contact but the first", len(w.recorded))
		}
	}
}

func TestVerifier_HeldFramesKeepTheirOrder(t *testing.T) {
	a, b := newNode(t, "a", 1, true, secret(1)), newNode(t, "b", 2, true, secret(1))
	var answers []wireFrame
	w := newNetwork(a, b)
	for i := range maxHeld + 3 {
		answers = append(answers, b.receive(w.now, a.send(b.mac, fmt.Sprint(i)))...)
	}
	if len(b.delivered) > 0 || len(answers) != 1 || b.verdicts[Held] != maxHeld || b.verdicts[Unanswered] != 3 {
		t.Fatalf("delivered %v before its sender has answered %d challenges; verdicts %v", b.delivered, len(answers), b.verdicts)
	}
	w.deliver(answers...)
	var want []string
	for i := range maxHeld {
		want = append(want, fmt.Sprint(i))
	}
	expect(t, b, want...)
}

// Every frame that was recorded, sent again: to a node that knows its sender, to one that was started
// since, and when its sender was started again.
func TestVerifier_RecordedFramesAreRefused(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		a, b := newNode(t, "a", 1, encrypt, secret(1)), newNode(t, "b", 2, encrypt, secret(1))
		w := newNetwork(a, b)
		for i := range 5 {
			w.deliver(a.send(b.mac, fmt.Sprint(i)), b.send(a.mac, fmt.Sprint(i)))
		}
		recorded := slices.Clone(w.recorded)
		replay := func(what string) {
			t.Helper()
			got := len(w.nodes[0].delivered) + len(w.nodes[1].delivered)
			w.deliver(recorded...)
			w.pass(5 * time.Second)
			w.deliver(recorded...)
			if now := len(w.nodes[0].delivered) + len(w.nodes[1].delivered); now != got {
				t.Errorf("%s: %d recorded messages were delivered", what, now-got)
			}
			w.deliver(w.nodes[0].send(w.nodes[1].mac, "live"))
			if d := w.nodes[1].delivered; len(d) == 0 || d[len(d)-1] != "live" {
				t.Errorf("%s: a live message was not delivered: %v", what, d)
			}
		}
		replay("both know each other")
		w.restart(1, newNodeAt(t, w.now, "b again", 2, encrypt, secret(1)))
		replay("the receiver was started again")
		w.restart(0, newNodeAt(t, w.now, "a again", 1, encrypt, secret(1)))
		replay("the sender was started again")
		w.restart(0, newNodeAt(t, w.now, "a for the third time", 1, encrypt, secret(1)))
		w.deliver(w.nodes[0].v.seal(w, w.nodes[0], transport.Broadcast)...)
		replay("the sender has said that it was started again")
	}
}

// restart puts a node that opens now in another one's place.
func (w *network) restart(k int, n *node) {
	w.nodes[k] = n
	w.pass(OpeningTime)
}

// seal asks an address, and returns the frames.
func (v *Verifier) seal(w *network, n *node, mac transport.MAC) []wireFrame {
	return n.seal(w.now, v.Ask(w.now, mac, nil))
}

// No byte of a frame can be changed, nor its addresses.
func TestVerifier_AlteredFramesAreRefused(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		a, b := newNode(t, "a", 1, encrypt, secret(1)), newNode(t, "b", 2, encrypt, secret(1))
		w := newNetwork(a, b)
		contact := n0(a.v.seal(w, a, b.mac))
		for i := range contact.bytes {
			if got := b.receive(w.now, forge(contact, i)); len(got) > 0 {
				t.Errorf("a contact frame was answered though byte %d was changed", i)
			}
		}
		if len(b.v.senders) != 1 || len(b.v.asks) != 0 {
			t.Errorf("changed contact frames are remembered: %d senders, %d asks", len(b.v.senders), len(b.v.asks))
		}
		w.deliver(contact)
		message := a.send(b.mac, "secret")
		if encrypt == strings.Contains(string(message.bytes), "secret") {
			t.Errorf("encrypt %v: %q", encrypt, message.bytes)
		}
		before := b.verdicts
		for i := range message.bytes {
			b.receive(w.now, forge(message, i))
		}
		for _, other := range []Addresses{
			{Dst: transport.Broadcast, Src: a.mac}, {Dst: b.mac, Src: transport.MAC{2, 0, 0, 0, 0, 3}}, {Dst: a.mac, Src: a.mac},
		} {
			b.receive(w.now, wireFrame{other, message.bytes})
		}
		if len(b.delivered) > 0 || b.verdicts[Accepted] != before[Accepted] {
			t.Errorf("delivered %v", b.delivered)
		}
		w.deliver(message)
		expect(t, b, "secret")
	}
}

func n0(all []wireFrame) wireFrame { return all[0] }

// Frames that nobody with the key has made change nothing, cost a bounded number of derivations, and
// do not keep a node that has just been started from being heard.
func TestVerifier_ForgeriesTriggerNothing(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	thief := newNode(t, "thief", 1, false, secret(2))
	for thief.key.id != a.key.id { // a key that is tried
		thief = newNode(t, "thief", 1, false, secret(2+byte(counterOf(thief.send(b.mac, "")))%250))
		thief.key.id, thief.sealer.key.id = a.key.id, a.key.id
	}
	w := newNetwork(a, b)
	for i := range 5000 {
		f := thief.send(b.mac, "forged")
		f.bytes[16], f.bytes[17] = byte(i), byte(i>>8) // another incarnation each time
		if got := b.receive(w.now, f); len(got) > 0 {
			t.Fatal("a forged frame was answered")
		}
	}
	if len(b.v.senders) != 1 || len(b.delivered) > 0 {
		t.Errorf("%d senders, delivered %v", len(b.v.senders), b.delivered)
	}
	if b.verdicts[BadTag] != derivationBurst || b.verdicts[OverBudget] != 5000-derivationBurst {
		t.Errorf("verdicts %v", b.verdicts)
	}
	message := a.send(b.mac, "first") // over the budget, too
	w.deliver(message)
	expect(t, b)
	w.deliver(a.v.seal(w, a, b.mac)...) // but contact is not
	w.deliver(message, a.send(b.mac, "second"))
	expect(t, b, "first", "second")
}

// Recorded frames of many incarnations that are gone: a bounded number of challenges a second, and
// a node that is there is heard.
func TestVerifier_ReplaysTriggerFewChallenges(t *testing.T) {
	b := newNode(t, "b", 200, false, secret(1))
	var recorded []wireFrame
	for i := range 2 * maxUnproven {
		gone := newNode(t, fmt.Sprint("gone ", i), byte(i%100), false, secret(1))
		recorded = append(recorded, gone.send(b.mac, "old"))
	}
	w := newNetwork(b)
	sent := 0
	for range 20 { // for a second
		for _, f := range recorded {
			sent += len(b.receive(w.now, f))
		}
		w.now = w.now.Add(50 * time.Millisecond)
		sent += len(b.advance(w.now))
	}
	if sent > askBurst+budgetRate {
		t.Errorf("%d challenges in a second", sent)
	}
	expect(t, b)
	a := newNode(t, "a", 1, false, secret(1))
	w.nodes = append(w.nodes, a)
	w.pass(3 * time.Second)
	w.deliver(a.send(b.mac, "here"))
	w.pass(time.Second)
	expect(t, b, "here")
}

// Lost frames of contact are made up for, and what was kept is given up when nobody answers.
func TestVerifier_Timers(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	b.receive(w.now, a.send(b.mac, "one")) // its challenge is lost
	w.pass(firstAsk + time.Microsecond)
	expect(t, b, "one")

	gone := newNode(t, "gone", 3, false, secret(1))
	message := gone.send(b.mac, "old")
	w.deliver(message)
	w.pass(askLife)
	w.pass(time.Millisecond)
	if b.expired != 1 || b.v.heldBytes != 0 || len(b.v.asks) != 0 {
		t.Errorf("%d expired, %d bytes and %d challenges are left", b.expired, b.v.heldBytes, len(b.v.asks))
	}
	asked := len(w.recorded)
	for range 10 {
		w.deliver(message, gone.send(b.mac, "older"))
	}
	if n := len(w.recorded) - asked; n != 20 {
		t.Errorf("%d frames about an incarnation that did not answer", n-20)
	}
	w.nodes = append(w.nodes, gone) // it was only cut off
	w.pass(silence)
	w.deliver(gone.send(b.mac, "back"))
	expect(t, b, "one", "back")
	if _, ok := b.v.Deadline(); ok {
		w.pass(2 * askLife)
		if at, ok := b.v.Deadline(); ok {
			t.Errorf("something is due at %v though nothing is open", at)
		}
	}
}

// Two processes that share an address are both heard; one that is gone is not, when the other has
// been started in its place.
func TestVerifier_TwoOfOneAddress(t *testing.T) {
	one, two, b := newNode(t, "one", 1, false, secret(1)), newNode(t, "two", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(one, two, b)
	w.nodes = []*node{one, b}
	w.deliver(one.send(b.mac, "1a"))
	late := one.send(b.mac, "late") // never sent before the end
	w.nodes = append(w.nodes, two)
	w.deliver(two.send(b.mac, "2a"), one.send(b.mac, "1b"), two.send(b.mac, "2b"))
	w.deliver(one.send(b.mac, "1c"), two.send(b.mac, "2c"))
	w.pass(2 * askLife)
	expectSet(t, b, "1a", "1b", "1c", "2a", "2b", "2c")
	frames := len(w.recorded)
	w.deliver(two.send(b.mac, "2d"), one.send(b.mac, "1d"))
	if n := len(w.recorded) - frames; n != 2 {
		t.Errorf("%d frames for 2 messages: they take each other's place", n)
	}
	w.nodes = []*node{b}
	three := newNodeAt(t, w.now, "three", 1, false, secret(1))
	w.nodes = append(w.nodes, three)
	w.pass(OpeningTime)
	w.deliver(three.send(b.mac, "3a"))
	w.deliver(late)
	w.pass(2 * askLife)
	expectSet(t, b, "1a", "1b", "1c", "1d", "2a", "2b", "2c", "2d", "3a")
}

// Keys change under way: the new one is added everywhere, then seals everywhere, then the old one
// goes.
func TestVerifier_Rotation(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	set := func(n *node, secrets ...[]byte) {
		var keys []*Key
		for _, s := range secrets {
			keys = append(keys, NewKey(s, cluster))
		}
		n.v.SetKeys(w.now, keys)
		n.key, n.sealer = keys[0], NewSealer(keys[0], n.sealer.incarnation, n.mac, false)
	}
	var want []string
	for i, step := range []func(){
		func() {},
		func() { set(a, secret(1), secret(2)) }, func() { set(b, secret(1), secret(2)) },
		func() { set(b, secret(2), secret(1)) }, func() { set(a, secret(2), secret(1)) },
		func() { set(a, secret(2)) }, func() { set(b, secret(2)) },
	} {
		step()
		w.deliver(a.send(b.mac, fmt.Sprint(i)), b.send(a.mac, fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	expect(t, a, want...)
	expect(t, b, want...)
	recorded := slices.Clone(w.recorded)
	w.deliver(recorded...)
	expect(t, b, want...)
	set(a, secret(3))
	w.deliver(a.send(b.mac, "unknown"))
	expect(t, b, want...)
}

// Two keys of one ID are both tried.
func TestVerifier_KeysOfOneID(t *testing.T) {
	first := NewKey(secret(1), cluster)
	var same []byte
	for n := byte(2); same == nil; n++ {
		if NewKey(secret(n), cluster).id == first.id {
			same = secret(n)
		}
	}
	a, b := newNode(t, "a", 1, true, same, secret(1)), newNode(t, "b", 2, true, secret(1), same)
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"), b.send(a.mac, "two"))
	expect(t, b, "one")
	expect(t, a, "two")
}

func TestVerifier_RemembersABoundedNumber(t *testing.T) {
	b := newNode(t, "b", 2, false, secret(1))
	now := newNetwork().now
	for i := range uint64(maxSenders + 10) {
		b.v.prove(now, i+1, transport.MAC{2, 1, byte(i >> 16), byte(i >> 8), byte(i)}, 0, nil)
	}
	b.checkBounds()
	if b.v.senders[b.sealer.incarnation] == nil {
		t.Error("its own incarnation was forgotten")
	}
	if b.v.senders[1] != nil || b.v.senders[maxSenders+10] == nil {
		t.Error("want the oldest forgotten, the newest known")
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		a, b := newNode(t, "a", 1, encrypt, secret(1)), newNode(t, "b", 2, encrypt, secret(1))
		newNetwork(a, b).deliver(a.send(b.mac, "contact"))
		text := []byte(strings.Repeat("x", 100))
		buf := make([]byte, wire.AuthHeaderLen+len(text)+wire.TagLen)
		h, addresses := a.header(wire.Unicast), Addresses{Dst: b.mac, Src: a.mac}
		var got Frame
		var auth wire.Auth
		if n := testing.AllocsPerRun(200, func() {
			a.counter++
			frame := buf[:wire.AuthHeaderLen+len(text)]
			if encrypt {
				frame = a.sealer.Encrypt(&a.scratch, frame, text, h, &addresses, a.counter)
			} else {
				a.sealer.Seal(&a.scratch, frame, h, &addresses, a.counter)
			}
			wire.ParseAuth(frame, h, &auth)
			got = Frame{Addresses: addresses, Bytes: frame}
			if v := b.v.Verify(&got, &auth, &b.plain); v != Accepted {
				t.Fatal(v)
			}
		}); n != 0 {
			t.Errorf("encrypt %v: %v allocations", encrypt, n)
		}
	}
}

// The golden vectors of docs/wire-format.md.
func TestGoldenVectors(t *testing.T) {
	page, err := os.ReadFile("../../../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), " ", "")
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(i)
	}
	const incarnation = 0x1112131415161718
	addresses := Addresses{Dst: transport.MAC{2, 0, 0, 0, 0, 2}, Src: transport.MAC{2, 0, 0, 0, 0, 1}}
	key := NewKey(raw, 0x01020304)
	h := wire.Header{Kind: wire.Unicast, DstPort: 9, SrcPort: 7, From: 1, To: 2, Cluster: 0x01020304}
	var s Scratch
	plain := append(make([]byte, wire.AuthHeaderLen), "hello"...)
	NewSealer(key, incarnation, addresses.Src, false).Seal(&s, plain, &h, &addresses, 1)
	encrypted := make([]byte, wire.AuthHeaderLen+5+wire.TagLen)
	encrypted = NewSealer(key, incarnation, addresses.Src, true).Encrypt(&s, encrypted, []byte("hello"), &h, &addresses, 2)
	body := wire.ContactBody{Flags: wire.ContactChallenge}
	for i := range body.Challenge {
		body.Challenge[i] = 0xa0 + byte(i)
	}
	contact := make([]byte, wire.AuthHeaderLen+wire.ContactLen)
	body.Put(contact[wire.AuthHeaderLen:])
	key.SealContact(contact, &wire.Header{From: 1, To: wire.AllNodes, Cluster: 0x01020304}, &addresses, incarnation, 1)
	for name, b := range map[string][]byte{"authenticated": plain, "encrypted": encrypted, "contact": contact} {
		if !strings.Contains(text, "`"+hex.EncodeToString(b)+"`") {
			t.Errorf("docs/wire-format.md lacks the %s frame:\n%x", name, b)
		}
	}
}
