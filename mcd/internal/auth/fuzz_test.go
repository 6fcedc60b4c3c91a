package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// FuzzVerifier has three nodes talk over a network that loses, keeps back, repeats and changes
// frames, has loops, and has them start again, beside their former lives or in their place, and
// change keys, as the bytes say. Nothing is ever delivered twice or changed, a frame that was
// changed triggers nothing, and all bounds hold after each event.
func FuzzVerifier(f *testing.F) {
	f.Add([]byte{0x00, 0x40, 0x01, 0x41, 0x80, 0xc0, 0x00, 0x41})
	f.Add([]byte{0x00, 0x01, 0x02, 0x40, 0x41, 0x42, 0xe1, 0x40, 0x80, 0xff, 0x00, 0xc3, 0xd1, 0x20, 0x60})
	for seed := range uint64(40) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) { runScript(t, script[:min(len(script), 400)]) })
}

// fuzzNet is the network of a script.
type fuzzNet struct {
	*network
	t            testing.TB
	lives, texts int
	small        bool // the nodes remember little
	closed       []string
	flying       []wireFrame // sent and not received yet, in any order
	at           int         // in the script
}

const fuzzNodes = 3

// open opens a node at the k-th address. Where little is remembered, bounds are reached soon.
func (w *fuzzNet) open(k int) *node {
	w.lives++
	n := newNodeAt(w.t, w.now, fmt.Sprint("life ", w.lives), byte(k+1), w.lives%2 == 0, secret(1), secret(2))
	if w.small {
		n.v.bounds = bounds{senders: 3, unproven: 2, retired: 2, asks: 2, held: 2, heldBytes: 5}
		n.v.challenges, n.v.toUnknown = tokenbucket.New(50, 4), tokenbucket.New(50, 2)
		n.v.responses, n.v.derivations = tokenbucket.New(50, 2), tokenbucket.New(50, 4)
	}
	return n
}

func (w *fuzzNet) take(frames ...wireFrame) {
	w.flying = append(w.flying, frames...)
	w.recorded = append(w.recorded, frames...)
}

// arrive gives a frame to whom it is for; where there is a loop, to its sender, too, whose driver
// drops it.
func (w *fuzzNet) arrive(f wireFrame, loop bool) {
	for _, n := range w.nodes {
		if n.mac == f.Src && loop {
			before := len(n.delivered)
			w.take(n.receive(w.now, f)...)
			n.delivered = n.delivered[:before]
		} else if n.mac != f.Src && (f.Dst == n.mac || f.Dst == transport.Broadcast) {
			w.take(n.receive(w.now, f)...)
		}
	}
}

func runScript(t testing.TB, script []byte) {
	w := &fuzzNet{network: newNetwork(), t: t, small: len(script) > 0 && script[0]&1 != 0}
	for k := range fuzzNodes {
		w.nodes = append(w.nodes, w.open(k))
	}
	w.pass(OpeningTime)
	for i, b := range script {
		w.at = i
		switch arg := int(b & 0x1f); b >> 5 {
		case 0, 1:
			w.message(arg)
		case 2, 3: // the oldest arrives, or one of those behind it
			if len(w.flying) > 0 {
				at := arg % min(len(w.flying), 4)
				f := w.flying[at]
				w.flying = append(w.flying[:at:at], w.flying[at+1:]...)
				if b>>5 == 2 || arg&0x10 == 0 { // else it is lost
					w.arrive(f, false)
				}
			}
		case 4: // a recorded one comes again
			if n := len(w.recorded); n > 0 {
				w.arrive(w.recorded[(i*31+arg)%n], arg == 0x1f)
			}
		case 5:
			w.changed(arg)
		case 6:
			w.ask(arg)
		case 7:
			w.restart(arg)
		}
	}
	w.check()
}

// message has a node send one; now and then behind a gap, or with a counter that no node uses.
func (w *fuzzNet) message(arg int) {
	n := w.nodes[arg%len(w.nodes)]
	to := w.nodes[(arg+1+arg/fuzzNodes%2)%len(w.nodes)]
	if Due(w.now.Sub(n.checked)) {
		n.history.Add(w.now, n.counter)
		n.checked = w.now
	}
	switch before := n.counter; {
	case arg == 0x1e: // a gap, as long as the window
		n.counter += windowBits
	case arg == 0x1f:
		n.counter = ^uint64(0) // the next one is 0
		w.take(n.send(to.mac, "counter 0"))
		n.counter = before
	}
	w.texts++
	w.take(n.send(to.mac, fmt.Sprint(w.texts)))
}

// changed has a recorded frame come changed.
func (w *fuzzNet) changed(arg int) {
	n := len(w.recorded)
	if n == 0 {
		return
	}
	f := w.recorded[(w.at*31+arg)%n]
	altered := forge(f, (w.at*7+arg)%len(f.bytes))
	before := snapshot(w.nodes)
	sent := len(w.flying)
	w.arrive(altered, false)
	if after := snapshot(w.nodes); after != before || len(w.flying) != sent {
		w.t.Fatalf("a changed frame has changed %s into %s, and was answered by %d", before, after, len(w.flying)-sent)
	}
}

// ask has a node ask, or search, or gives it other keys, or lets time pass.
func (w *fuzzNet) ask(arg int) {
	k := arg % fuzzNodes
	n := w.nodes[k]
	switch {
	case arg == 0x1f: // who has the key sends what makes no sense
		f := wireFrame{Addresses{Dst: w.nodes[(k+1)%fuzzNodes].mac, Src: n.mac}, make([]byte, wire.AuthHeaderLen+wire.ContactLen-1)}
		n.v.counter++
		n.key.SealContact(f.bytes, n.header(0), &f.Addresses, n.sealer.incarnation, n.v.counter)
		w.take(f)
	case arg >= 0x18:
		to := transport.Broadcast
		if arg&4 != 0 {
			to = w.nodes[(k+1)%fuzzNodes].mac
		}
		switch arg & 3 {
		case 0, 1:
			w.take(n.seal(w.now, n.v.Ask(w.now, to, nil))...)
		case 2:
			w.take(n.seal(w.now, n.v.Search(w.now, to, uint32(w.at), nil))...)
		case 3:
			n.v.Settle(to)
		}
	case arg >= 0x14:
		n.setKeys(w.now, [][][]byte{{secret(1), secret(2)}, {secret(2), secret(1)}, {secret(1)}, {secret(2)}}[arg&3]...)
	default:
		w.now = w.now.Add(time.Duration(1<<(arg%8)) * 5 * time.Millisecond)
		for _, n := range w.nodes {
			w.take(n.advance(w.now)...)
		}
	}
}

// restart starts a node again, beside its former life or in its place, or changes the key that it
// seals with.
func (w *fuzzNet) restart(arg int) {
	k := arg % fuzzNodes
	switch {
	case arg >= 0x1c && len(w.nodes) < 2*fuzzNodes: // another process has the address, too
		w.nodes = append(w.nodes, w.open(k))
		w.now = w.now.Add(OpeningTime)
	case arg&0x10 != 0:
		w.closed = append(w.closed, w.nodes[k].received()...)
		w.nodes[k] = w.open(k)
		w.now = w.now.Add(OpeningTime)
	default:
		n := w.nodes[k]
		n.key = n.v.keys[(arg>>3&1)%len(n.v.keys)]
		n.sealer = NewSealer(n.key, n.sealer.incarnation, n.mac, n.sealer.encrypt)
	}
}

// check fails where something was delivered twice to one life of a node, or never sent.
func (w *fuzzNet) check() {
	all := map[string]bool{}
	for _, n := range w.nodes {
		w.closed = append(w.closed, n.received()...)
	}
	for _, what := range w.closed {
		if all[what] {
			w.t.Fatalf("%s: delivered twice", what)
		}
		all[what] = true
		if strings.HasSuffix(what, "counter 0") {
			w.t.Fatalf("%s: no node uses that", what)
		}
	}
}

// received says what was delivered to a node, and to which.
func (n *node) received() (all []string) {
	for _, text := range n.delivered {
		all = append(all, n.name+" got "+text)
	}
	return all
}

// snapshot says what nodes remember.
func snapshot(nodes []*node) string {
	s := ""
	for _, n := range nodes {
		s += fmt.Sprint(len(n.v.senders), len(n.v.unproven), len(n.v.asks), n.v.heldBytes, len(n.delivered), n.v.counter, ";")
	}
	return s
}

// Random scripts, as the fuzzer would make them.
func TestVerifier_RandomScripts(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runScript(t, randomScript(seed)) })
	}
}

func randomScript(seed uint64) []byte {
	script := make([]byte, 400)
	x := seed*2654435761 + 1
	for i := range script {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		script[i] = byte(x >> 24)
		if script[i]>>5 == 7 && x>>40&3 != 0 { // fewer starts
			script[i] &= 0x7f
		}
	}
	return script
}
