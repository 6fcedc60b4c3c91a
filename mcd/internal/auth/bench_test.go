package auth

import (
	"testing"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// forgedFrames are frames with wrong tags, of a sender that is known.
var forgedFrames = []struct {
	name string
	kind wire.Kind
	size int // of the payload
}{
	{"message of 64 bytes", wire.Unicast, 64},
	{"message of 1452 bytes", wire.Unicast, 1452},
	{"contact", wire.Contact, wire.ContactLen},
	{"contact of 1452 bytes", wire.Contact, 1452},
	{"contact of 65467 bytes", wire.Contact, 65467},
}

// judgeForged returns what has a node judge a forged frame.
func judgeForged(t testing.TB, kind wire.Kind, size int) func() {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "known"))
	f := Frame{Addresses: Addresses{Dst: b.mac, Src: a.mac}, Bytes: make([]byte, wire.AuthHeaderLen+size)}
	header := wire.Auth{KeyID: a.key.id, Incarnation: a.sealer.incarnation, Counter: 99}
	wire.PutAuth(f.Bytes, a.header(kind), &header, size)
	copy(f.Bytes[wire.TagOffset:], make([]byte, wire.TagLen))
	return func() {
		var verdict Verdict
		if kind == wire.Contact {
			verdict, _ = b.v.Contact(w.now, &f, &header, nil)
		} else {
			verdict = b.v.Verify(&f, &header, &b.plain)
		}
		if verdict != BadTag {
			t.Fatalf("verdict %d", verdict)
		}
	}
}

// What a forged frame costs: docs/security.md.
func BenchmarkVerifier_Forged(b *testing.B) {
	for _, f := range forgedFrames {
		b.Run(f.name, func(b *testing.B) {
			judge := judgeForged(b, f.kind, f.size)
			b.ReportAllocs()
			for b.Loop() {
				judge()
			}
		})
	}
}

// Who forges frames makes no garbage at their receiver, of whatever kind and length they are.
func TestVerifier_ForgedFramesAllocateNothing(t *testing.T) {
	for _, f := range forgedFrames {
		judge := judgeForged(t, f.kind, f.size)
		if n := testing.AllocsPerRun(200, judge); n != 0 {
			t.Errorf("%s: %v allocations", f.name, n)
		}
	}
}

// A contact frame has one length: others have a wrong tag, whatever it is. Both keys of one ID are
// tried.
func TestContact_OtherLengths(t *testing.T) {
	a := newNode(t, "a", 1, false, secret(1))
	n := byte(2)
	for NewKey(secret(n), cluster).id != a.key.id {
		n++
	}
	b := newNode(t, "b", 2, false, secret(n), secret(1))
	w := newNetwork(a, b)
	for _, size := range []int{0, wire.ContactLen - 1, wire.ContactLen, wire.ContactLen + 1, 1452} {
		f := wireFrame{Addresses{Dst: transport.Broadcast, Src: a.mac}, make([]byte, wire.AuthHeaderLen+size)}
		a.key.SealContact(f.bytes, a.header(0), &f.Addresses, a.sealer.incarnation, 7)
		before := b.verdicts
		b.receive(w.now, f)
		want := BadTag
		if size == wire.ContactLen {
			want = Accepted
		}
		if b.verdicts[want] != before[want]+1 {
			t.Errorf("%d bytes: verdicts %v, were %v", size, b.verdicts, before)
		}
	}
}
