package auth

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// FuzzVerifier has three nodes talk over a network that loses, keeps back, repeats and changes
// frames, and has them start again and change keys, as the bytes say. Nothing is ever delivered
// twice or changed, a frame that was changed triggers nothing, and all bounds hold after each event.
func FuzzVerifier(f *testing.F) {
	f.Add([]byte{0x00, 0x40, 0x01, 0x41, 0x80, 0xc0, 0x00, 0x41})
	f.Add([]byte{0x00, 0x01, 0x02, 0x40, 0x41, 0x42, 0xe1, 0x40, 0x80, 0xff, 0x00, 0xc3, 0xd1, 0x20, 0x60})
	for seed := range uint64(40) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) { runScript(t, script[:min(len(script), 400)]) })
}

func runScript(t testing.TB, script []byte) {
	const size = 3
	w := newNetwork()
	lives, texts := 0, 0
	var closed []string
	open := func(k int) *node {
		lives++
		return newNodeAt(t, w.now, fmt.Sprint("life ", lives), byte(k+1), lives%2 == 0, secret(1), secret(2))
	}
	for k := range size {
		w.nodes = append(w.nodes, open(k))
	}
	w.pass(OpeningTime)
	var flying []wireFrame // sent and not received yet, in any order
	take := func(frames ...wireFrame) {
		flying = append(flying, frames...)
		w.recorded = append(w.recorded, frames...)
	}
	arrive := func(f wireFrame) {
		for _, n := range w.nodes {
			if n.mac != f.Src && (f.Dst == n.mac || f.Dst == transport.Broadcast) {
				take(n.receive(w.now, f)...)
			}
		}
	}
	for i, b := range script {
		arg := int(b & 0x1f)
		switch b >> 5 {
		case 0, 1: // a message
			from := arg % size
			to := (from + 1 + arg/size%(size-1)) % size
			texts++
			n := w.nodes[from]
			if n.history.Add(w.now, n.counter); true {
				take(n.send(w.nodes[to].mac, fmt.Sprint(texts)))
			}
		case 2, 3: // the oldest arrives, or one of those behind it
			if len(flying) > 0 {
				at := arg % min(len(flying), 4)
				f := flying[at]
				flying = append(flying[:at:at], flying[at+1:]...)
				if b>>5 == 2 || arg&0x10 == 0 { // else it is lost
					arrive(f)
				}
			}
		case 4: // a recorded one comes again
			if n := len(w.recorded); n > 0 {
				arrive(w.recorded[(i*31+arg)%n])
			}
		case 5: // a recorded one comes changed
			if n := len(w.recorded); n > 0 {
				f := w.recorded[(i*31+arg)%n]
				changed := forge(f, (i*7+arg)%len(f.bytes))
				before := snapshot(w.nodes)
				sent := len(flying)
				arrive(changed)
				if after := snapshot(w.nodes); after != before || len(flying) != sent {
					t.Fatalf("a changed frame has changed %s into %s, and was answered by %d", before, after, len(flying)-sent)
				}
			}
		case 6: // a node asks, or gets other keys; or time passes
			if k := arg % size; arg >= 0x18 {
				to := transport.Broadcast
				if arg&4 != 0 {
					to = w.nodes[(k+1)%size].mac
				}
				take(w.nodes[k].seal(w.now, w.nodes[k].v.Ask(w.now, to, nil))...)
				break
			} else if arg >= 0x14 {
				w.nodes[k].setKeys(w.now, [][][]byte{{secret(1), secret(2)}, {secret(2), secret(1)}, {secret(1)}, {secret(2)}}[arg&3]...)
				break
			}
			w.now = w.now.Add(time.Duration(1<<(arg%8)) * 5 * time.Millisecond)
			for _, n := range w.nodes {
				take(n.advance(w.now)...)
			}
		case 7:
			k := arg % size
			if arg&0x10 != 0 { // one starts again
				closed = append(closed, w.nodes[k].received()...)
				w.nodes[k] = open(k)
				w.now = w.now.Add(OpeningTime)
			} else { // one changes the key that it seals with
				n := w.nodes[k]
				n.key = n.v.keys[(arg>>3&1)%len(n.v.keys)]
				n.sealer = NewSealer(n.key, n.sealer.incarnation, n.mac, n.sealer.encrypt)
			}
		}
	}
	all := map[string]bool{}
	for _, n := range w.nodes {
		closed = append(closed, n.received()...)
	}
	for _, what := range closed {
		if all[what] {
			t.Fatalf("%s: delivered twice", what)
		}
		all[what] = true
	}
}

// received says what was delivered to a node, and to which.
func (n *node) received() (all []string) {
	for _, text := range n.delivered {
		all = append(all, fmt.Sprint(n.mac[5], " got ", text))
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
