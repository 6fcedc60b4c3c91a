package auth

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

const cluster = 7

func secret(n byte) []byte {
	s := make([]byte, 32)
	s[0], s[31] = n, 0xff
	return s
}

// wireFrame is a frame on its way. Its contents are shared by all who hear it, and by who records it.
type wireFrame struct {
	Addresses
	bytes []byte
}

// node is an endpoint on a network that the test is.
type node struct {
	t         testing.TB
	name      string
	mac       transport.MAC
	v         *Verifier
	sealer    *Sealer
	key       *Key
	counter   uint64
	scratch   Scratch
	plain     []byte
	delivered []string
	verdicts  [OverBudget + 1]int
	expired   int
	released  int    // of the frames that were kept
	sends     []Send // answers to the last frame
	answers   int    // contact frames that answer an open challenge
	history   History
	checked   monotime.Time // when the last checkpoint was made
}

// newNode opens an endpoint. Its chance is its name's alone.
func newNode(t testing.TB, name string, mac byte, encrypt bool, secrets ...[]byte) *node {
	return newNodeAt(t, start, name, mac, encrypt, secrets...)
}

// start is when nodes open, if nothing else is said, and when networks begin.
var start = monotime.At(time.Hour)

func newNodeAt(t testing.TB, now monotime.Time, name string, mac byte, encrypt bool, secrets ...[]byte) *node {
	seed := uint64(0)
	for _, c := range name {
		seed = seed*131 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	n := &node{t: t, name: name, mac: transport.MAC{2, 0, 0, 0, 0, mac}}
	var keys []*Key
	for _, s := range secrets {
		keys = append(keys, NewKey(s, cluster))
	}
	incarnation := rng.Uint64()
	n.history.Add(now, 0)
	n.v = New(Config{MAC: n.mac, Incarnation: incarnation, Since: now, Random: func(b []byte) {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}})
	n.v.SetKeys(now, keys)
	n.key, n.sealer = keys[0], NewSealer(keys[0], incarnation, n.mac, encrypt)
	return n
}

// placeOf is where the nodes of an address are.
func placeOf(mac transport.MAC) (at transport.Place) {
	copy(at[:], mac[:])
	return at
}

func (n *node) header(kind wire.Kind) *wire.Header {
	return &wire.Header{Kind: kind, From: uint16(n.mac[5]), To: 9, DstPort: 1, SrcPort: 2, Cluster: cluster}
}

// send seals a message.
func (n *node) send(dst transport.MAC, text string) wireFrame {
	n.counter++
	f := wireFrame{Addresses{Dst: dst, Src: n.mac}, make([]byte, wire.AuthHeaderLen+len(text), wire.AuthHeaderLen+len(text)+wire.TagLen)}
	if n.sealer.Encrypts() {
		f.bytes = n.sealer.Encrypt(&n.scratch, f.bytes, []byte(text), n.header(wire.Unicast), &f.Addresses, n.counter)
		return f
	}
	copy(f.bytes[wire.AuthHeaderLen:], text)
	n.sealer.Seal(&n.scratch, f.bytes, n.header(wire.Unicast), &f.Addresses, n.counter)
	return f
}

// seal makes contact frames of what a verifier asks for.
func (n *node) seal(now monotime.Time, sends []Send) (frames []wireFrame) {
	for _, s := range sends {
		if s.Body.Has(wire.ContactResponse) {
			s.Body.Floor = n.history.Floor(now, s.Body.EchoedAge, n.counter)
			s.Body.Place = n.key.PlaceSum(placeOf(n.mac), n.sealer.incarnation, s.Counter)
		}
		f := wireFrame{Addresses{Dst: s.Dst, Src: n.mac}, make([]byte, wire.AuthHeaderLen+wire.ContactLen)}
		s.Body.Put(f.bytes[wire.AuthHeaderLen:])
		n.key.SealContact(f.bytes, n.header(0), &f.Addresses, n.sealer.incarnation, s.Counter)
		frames = append(frames, f)
	}
	return frames
}

// receive gives a frame to the node, as the driver does, and returns its answers.
func (n *node) receive(now monotime.Time, f wireFrame) []wireFrame {
	var h wire.Header
	var w wire.Auth
	before := string(f.bytes)
	defer func() {
		if string(f.bytes) != before {
			n.t.Fatalf("%s changed a frame that it received", n.name)
		}
	}()
	if wire.ParseAuth(f.bytes, &h, &w) != wire.OK {
		return nil
	}
	r := Frame{Addresses: f.Addresses, Bytes: f.bytes[:wire.AuthHeaderLen+len(h.Payload)]}
	var out []Send
	var verdict Verdict
	if h.Kind == wire.Contact {
		verdict, out = n.v.Contact(now, &r, &w, nil)
	} else if verdict = n.v.Verify(&r, &w, &n.plain); verdict == Unproven {
		verdict, out = n.v.Handle(now, &r, &w, &n.plain, nil)
	}
	n.verdicts[verdict]++
	n.sends = out
	if r.Answers {
		n.answers++
		if !r.IsFrom(placeOf(f.Src), &w) || r.IsFrom(placeOf(n.mac), &w) {
			n.t.Fatalf("%s: an answer says that it left elsewhere than it did", n.name)
		}
	}
	if verdict == Accepted && h.Kind != wire.Contact {
		n.delivered = append(n.delivered, string(r.Payload))
	}
	for _, held := range n.v.Released() {
		n.delivered = append(n.delivered, string(held.Payload))
		n.released++
	}
	n.expired += n.v.Expired()
	n.checkBounds()
	return n.seal(now, out)
}

func (n *node) advance(now monotime.Time) []wireFrame {
	out := n.v.Advance(now, nil)
	n.expired += n.v.Expired()
	n.checkBounds()
	return n.seal(now, out)
}

// checkBounds fails where a bound of limits.go is broken, or the books do not agree: each frame that
// was kept is released or expired, or is kept still.
func (n *node) checkBounds() {
	v := n.v
	held, kept, proven := 0, 0, 0
	for _, s := range v.senders {
		if len(s.held) > v.bounds.held {
			n.t.Fatalf("%s holds %d frames of one sender", n.name, len(s.held))
		}
		for _, f := range s.held {
			held += len(f.Payload)
		}
		kept += len(s.held)
		if s.proven {
			proven++
		}
	}
	if was := n.verdicts[Held]; was != kept+n.released+n.expired+v.expired {
		n.t.Fatalf("%s: %d frames were kept, %d are, %d were released and %d have expired", n.name, was, kept, n.released,
			n.expired+v.expired)
	}
	listed := 0
	for _, all := range v.byMAC {
		listed += len(all)
	}
	if listed != proven {
		n.t.Fatalf("%s: %d senders are listed by their addresses, %d are known", n.name, listed, proven)
	}
	if held != v.heldBytes || held > v.bounds.heldBytes || proven > v.bounds.senders || len(v.unproven) > v.bounds.unproven ||
		len(v.asks) > v.bounds.asks || len(v.retired) > v.bounds.retired || len(v.senders) != proven+len(v.unproven) {
		n.t.Fatalf("%s: holds %d bytes and says %d; %d proven and %d unproven of %d; %d asks",
			n.name, held, v.heldBytes, proven, len(v.unproven), len(v.senders), len(v.asks))
	}
}

// network delivers frames at once, and records them.
type network struct {
	nodes    []*node
	recorded []wireFrame
	now      monotime.Time
	replayer *replayer // nil: nobody replays
}

// newNetwork returns a network of nodes that have just been opened, and are about to send.
func newNetwork(nodes ...*node) *network {
	w := &network{nodes: nodes, now: start.Add(OpeningTime)}
	for _, n := range nodes {
		n.history.Add(w.now, n.counter)
	}
	return w
}

// deliver delivers frames, and the answers to them.
func (w *network) deliver(frames ...wireFrame) {
	for len(frames) > 0 {
		f := frames[0]
		frames = frames[1:]
		w.recorded = append(w.recorded, f)
		for _, n := range w.nodes {
			if n.mac != f.Src && (f.Dst == n.mac || f.Dst.IsMulticast()) {
				if r := w.replayer; r != nil && r.to == n {
					frames = append(frames, r.replay(w.now, r.quick)...)
				}
				frames = append(frames, n.receive(w.now, f)...)
			}
		}
	}
}

// pass lets time pass, with all that is due.
func (w *network) pass(d time.Duration) {
	end := w.now.Add(d)
	for _, n := range w.nodes {
		n.history.Add(w.now, n.counter) // it sends at its end, at the earliest
	}
	for {
		next := end
		for _, n := range w.nodes {
			if at, ok := n.v.Deadline(); ok && at.Before(next) {
				next = at
			}
		}
		if next == end {
			w.now = end
			return
		}
		w.now = next
		for _, n := range w.nodes {
			w.deliver(n.advance(w.now)...)
		}
	}
}

func expect(t *testing.T, n *node, want ...string) {
	t.Helper()
	if fmt.Sprint(n.delivered) != fmt.Sprint(want) {
		t.Errorf("%s got %v, want %v", n.name, n.delivered, want)
	}
}

// expectSet is expect in any order, as messages of several senders come.
func expectSet(t *testing.T, n *node, want ...string) {
	t.Helper()
	slices.Sort(n.delivered)
	expect(t, n, want...)
}

func forge(f wireFrame, at int) wireFrame {
	b := append([]byte(nil), f.bytes...)
	b[at] ^= 1
	return wireFrame{f.Addresses, b}
}

func counterOf(f wireFrame) uint64 { return binary.BigEndian.Uint64(f.bytes[24:]) }
