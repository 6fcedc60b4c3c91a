package auth

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// replayer sends frames again, over and over, to one node, and is quicker than all others: whatever
// else comes to that node, so many replays come just before it.
type replayer struct {
	to      *node
	frames  []wireFrame
	quick   int
	at      int
	answers int
}

// replay gives the node n frames, and returns its answers.
func (r *replayer) replay(now monotime.Time, n int) (out []wireFrame) {
	for range n {
		out = append(out, r.to.receive(now, r.frames[r.at%len(r.frames)])...)
		r.at++
	}
	r.answers += len(out)
	return out
}

// challengesOf returns challenges to all, as nodes that open send them, of so many incarnations that
// are gone, and of the addresses that these had.
func challengesOf(t *testing.T, w *network, n, addresses int) (recorded []wireFrame) {
	for i := range n {
		gone := newNode(t, fmt.Sprint("gone ", i), 0, false, secret(1))
		gone.mac[4], gone.mac[5] = byte(i%addresses/50), byte(1+i%addresses%50)
		recorded = append(recorded, gone.v.seal(w, gone, transport.Broadcast)...)
	}
	return recorded
}

// Challenges that were recorded of up to 2,000 incarnations come at more than ten times the rate at
// which strangers are answered. A node that opens meanwhile, at an address of which some of them are
// or at another one, hears its peer, though it sends nothing itself.
func TestVerifier_ReplayedChallengesStarveNobody(t *testing.T) {
	type recorded struct{ incarnations, addresses int }
	all, ends := []recorded{{1, 1}, {40, 40}, {2000, 50}, {2000, maxAsks - 50}}, 3500 // ms
	if testing.Short() {
		all, ends = all[1:2], 1000
	}
	for _, recordings := range all {
		for _, address := range []byte{1, 99} {
			const begins = 500 // ms: the burst is used up by then
			b := newNode(t, "b", 200, false, secret(1))
			w := newNetwork(b)
			r := &replayer{to: b, frames: challengesOf(t, w, recordings.incarnations, recordings.addresses), quick: 5}
			w.replayer = r
			var a *node
			sent := 0
			for ms := range ends {
				w.deliver(r.replay(w.now, 20)...)
				switch {
				case ms == begins:
					a = newNodeAt(t, w.now, "a", address, false, secret(1))
					w.nodes = append(w.nodes, a)
					w.deliver(a.v.seal(w, a, transport.Broadcast)...)
				case ms > begins && ms%100 == 0:
					sent++
					w.deliver(b.send(a.mac, fmt.Sprint(sent)))
				}
				w.pass(time.Millisecond)
			}
			if got := len(a.delivered); got < sent/2 {
				t.Errorf("%+v, address %d: got %d of %d messages", recordings, address, got, sent)
			}
			if most := 2 * (ends*budgetRate/1000 + askBurst); r.answers > most {
				t.Errorf("%+v: %d answers, want %d at most", recordings, r.answers, most)
			}
		}
	}
}

// Challenges that were recorded of more addresses than can be asked at once use up all that is done
// for strangers, while they come: docs/security.md says so. Nodes that know each other hear each
// other all the same, also one whose incarnation is among the recorded ones; what is kept is
// bounded; and who opens meanwhile is heard when it is over.
func TestVerifier_ReplaysOfManyAddresses(t *testing.T) {
	const ends = 2000 // ms
	b, old := newNode(t, "b", 200, false, secret(1)), newNode(t, "old", 255, false, secret(1))
	w := newNetwork(b, old)
	w.deliver(old.send(b.mac, "contact"))
	r := &replayer{to: b, frames: challengesOf(t, w, 2*maxAsks, 2*maxAsks), quick: 5}
	r.frames = append(r.frames, w.recorded...)
	w.replayer = r
	want := []string{"contact"}
	var a *node
	for ms := range ends {
		w.deliver(r.replay(w.now, 20)...)
		if ms == ends/2 {
			a = newNodeAt(t, w.now, "a", 99, false, secret(1))
			w.nodes = append(w.nodes, a)
		}
		if ms%100 == 0 {
			want = append(want, fmt.Sprint(ms))
			w.deliver(old.send(b.mac, fmt.Sprint(ms)), b.send(old.mac, fmt.Sprint(ms)))
		}
		w.pass(time.Millisecond)
	}
	expect(t, b, want...)
	expect(t, old, want[1:]...)
	if len(b.v.asks) != maxAsks {
		t.Errorf("%d addresses are asked: that is no test of the bound of %d", len(b.v.asks), maxAsks)
	}
	w.replayer = nil
	w.deliver(a.send(b.mac, "a"))
	w.pass(2 * askLife)
	w.deliver(a.send(b.mac, "a again"))
	w.pass(askLife)
	if got := b.delivered[len(b.delivered)-1]; got != "a again" {
		t.Errorf("when it is over, %s got %q last", b.name, got)
	}
}

// A challenge of a node that is known is answered once, and one that it repeats again.
func TestVerifier_ChallengeIsAnsweredOnce(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	challenge := func() wireFrame {
		return n0(a.seal(w.now, a.v.challenge(w.now, b.mac, nil, nil)))
	}
	first := challenge()
	if n := len(b.receive(w.now, first)); n != 1 {
		t.Fatalf("%d answers to a challenge", n)
	}
	for range 3 * askBurst {
		if n := len(b.receive(w.now, first)); n != 0 {
			t.Fatalf("%d answers to a challenge that was answered before", n)
		}
	}
	if b.verdicts[Replayed] != 3*askBurst {
		t.Errorf("verdicts %v, want %d replayed", b.verdicts, 3*askBurst)
	}
	repeated := a.v.message(w.now, a.v.asks[b.mac])
	if n := len(b.receive(w.now, n0(a.seal(w.now, []Send{repeated})))); n != 1 {
		t.Errorf("%d answers to the challenge when it is repeated", n)
	}
	if n := len(b.receive(w.now, first)); n != 0 {
		t.Errorf("%d answers to the first one again", n)
	}
}

// A sender whose first challenge could not be sent, as too many were open, is challenged when there
// is room, while its frames are kept.
func TestVerifier_ChallengeThatHadNoRoom(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.nodes = []*node{b}
	for i := range maxAsks {
		b.v.Ask(w.now, transport.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}, nil)
	}
	if n := len(b.receive(w.now, a.send(b.mac, "one"))); n != 0 || b.verdicts[Held] != 1 {
		t.Fatalf("%d challenges more than the limit, verdicts %v", n, b.verdicts)
	}
	for at := range b.v.asks { // one of them is over
		delete(b.v.asks, at)
		break
	}
	w.nodes = append(w.nodes, a)
	w.deliver(a.send(b.mac, "two"))
	expect(t, b, "one", "two")
}

// What is due costs the same whether ten senders are known or all that are remembered.
func TestVerifier_AdvanceLooksAtThoseThatAreAsked(t *testing.T) {
	quickest := func(known int) time.Duration {
		b := newNode(t, "b", 200, false, secret(1))
		now := start
		for i := range known {
			b.v.prove(now, uint64(i+1), transport.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)}, 0, nil)
		}
		b.v.Ask(now, transport.MAC{2, 9, 9, 9, 9, 9}, nil)
		best := time.Hour
		for range 20 { // of which none is held up by others, it is hoped; one is enough
			at, ok := b.v.Deadline()
			if !ok {
				t.Fatal("nothing is due")
			}
			began := time.Now()
			b.v.Advance(at, nil)
			best = min(best, time.Since(began))
		}
		return best
	}
	if few, many := quickest(10), quickest(maxSenders-1); many > 20*few+20*time.Microsecond {
		t.Errorf("Advance takes %v where 10 senders are known, and %v where %d are", few, many, maxSenders-1)
	}
}

// Those that are asked, and no others, are given up in time: also one that was known, answered, and
// is asked again.
func TestVerifier_GivesUpThoseThatAreAsked(t *testing.T) {
	b := newNode(t, "b", 9, false, secret(1))
	w := newNetwork(b)
	gone := newNode(t, "gone", 1, false, secret(1))
	next := newNode(t, "next", 1, false, secret(1))
	b.v.prove(w.now, gone.sealer.incarnation, gone.mac, 0, nil)
	for round := range 3 {
		b.v.prove(w.now, gone.sealer.incarnation, gone.mac, 0, nil)
		b.v.prove(w.now, next.sealer.incarnation, next.mac, 0, nil) // gone has to prove itself
		b.v.senders[next.sealer.incarnation].state = suspended
		b.v.senders[gone.sealer.incarnation].state = suspended
		b.receive(w.now, gone.send(b.mac, "kept"))
		w.pass(askLife / 2)
		b.receive(w.now, next.send(b.mac, "kept"))
		if got := b.v.heldBytes; got != 8 || len(b.v.awaited) != 2 {
			t.Fatalf("round %d: %d bytes are kept, %d are asked", round, got, len(b.v.awaited))
		}
		w.pass(askLife/2 + time.Millisecond)
		if b.expired != 2*round+1 || len(b.v.awaited) != 1 {
			t.Fatalf("round %d: %d expired, %d are asked", round, b.expired, len(b.v.awaited))
		}
		w.pass(askLife)
		if b.expired != 2*round+2 || len(b.v.awaited) != 0 {
			t.Fatalf("round %d: %d expired, %d are asked", round, b.expired, len(b.v.awaited))
		}
		w.pass(silence)
	}
	if at, ok := b.v.Deadline(); ok {
		t.Errorf("something is due at %v though nobody is asked", at)
	}
}
