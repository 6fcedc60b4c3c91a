package fabric

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// script hands out the fuzzer's bytes, then zeros.
type script []byte

func (s *script) next() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) below(n int) int { return int(s.next()) % n }

// port draws from few VIDs, so that ports have some in common.
func (s *script) port() Port {
	vids := []transport.VID{1, 2, 3, 4095}
	p := Port{PVID: transport.VID(s.below(4)), TaggedOnly: s.below(8) == 0}
	if flags := s.next(); flags&1 != 0 {
		p.VIDs = []transport.VID{}
		for i, vid := range vids {
			if flags&(2<<i) != 0 {
				p.VIDs = append(p.VIDs, vid)
			}
		}
		if flags&64 != 0 && p.PVID != 0 {
			p.Untagged = []transport.VID{p.PVID}
		}
	}
	return p
}

// world is a fabric under the fuzzer, with what is known of it.
type world struct {
	t       *testing.T
	f       *Fabric
	devices []Device
	cables  []*Cable
	links   []*Link
	joined  map[*Link]bool
	sent    uint32
}

var fuzzGroup = transport.MAC{3, 9}

// FuzzFabric: bytes are a script that builds a fabric and sends through it. Send returns, so no loop was
// accepted; a station receives only frames for it, never its own, and whole; a frame that was refused
// for a full queue arrives nowhere.
func FuzzFabric(f *testing.F) {
	f.Add([]byte("switches, hubs, cables and frames"))
	f.Add([]byte{0, 0, 0, 2, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 4, 0, 1, 0, 0, 4, 1, 0, 1, 9, 5, 1})
	f.Add(bytes.Repeat([]byte{0, 1, 2, 0, 1, 1, 0, 0, 3, 1, 0, 0, 0, 4, 0, 0, 1, 1}, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := script(b)
		w := &world{t: t, f: newFabric(t, Config{QueueFrames: 4, MTU: 64, DropWhenFull: in.below(4) == 0}), joined: make(map[*Link]bool)}
		for steps := 0; len(in) > 0 && steps < 300; steps++ {
			w.step(&in)
		}
		for _, l := range w.links {
			w.poll(l, 4)
		}
	})
}

func (w *world) step(in *script) {
	switch op := in.below(12); {
	case op == 0 && len(w.devices) < 8:
		w.devices = append(w.devices, w.f.AddSwitch(""))
	case op == 1 && len(w.devices) < 8:
		w.devices = append(w.devices, w.f.AddHub(""))
	case len(w.devices) == 0:
	case op == 2:
		a, b := w.devices[in.below(len(w.devices))], w.devices[in.below(len(w.devices))]
		if c, err := w.f.Connect(a, b, in.port()); err == nil {
			w.cables = append(w.cables, c)
		}
	case op == 3 && len(w.links) < 12:
		if l, err := w.f.Attach(w.devices[in.below(len(w.devices))], Station{Port: in.port()}); err == nil {
			w.links = append(w.links, l)
		}
	case op == 4 && len(w.cables) > 0:
		w.cables[in.below(len(w.cables))].SetUp(in.below(2) == 0)
	case len(w.links) == 0:
	case op == 5:
		w.poll(w.links[in.below(len(w.links))], in.below(4))
	case op == 6:
		l := w.links[in.below(len(w.links))]
		w.joined[l] = l.Join(fuzzGroup) == nil || w.joined[l]
	case op == 7:
		w.links[in.below(len(w.links))].SetUp(in.below(2) == 0)
	case op == 8 && in.below(4) == 0:
		if err := w.links[in.below(len(w.links))].Close(); err != nil {
			w.t.Fatal(err)
		}
	default:
		w.send(in)
	}
}

// payloadOf is what the n-th frame carries: its number, and so many bytes made from it.
func payloadOf(n uint32) []byte {
	p := numbered(transport.MAC{}, n).Payload
	return append(p, bytes.Repeat([]byte{byte(n) | 1}, int(n)%64)...)
}

func (w *world) send(in *script) {
	from, to := w.links[in.below(len(w.links))], w.links[in.below(len(w.links))]
	w.sent++
	fr := transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: payloadOf(w.sent)}
	switch in.below(4) {
	case 0:
		fr.Dst = transport.Broadcast
	case 1:
		fr.Dst = fuzzGroup
	}
	if in.below(2) == 0 {
		fr.Tagged, fr.Tag = true, transport.TagFromTCI(uint16(in.next())<<8|uint16(in.below(5)))
	}
	queued := w.queued()
	n, err := from.Send([]transport.Frame{fr})
	if (n == 1) != (err == nil) {
		w.t.Fatalf("Send: n=%d, %v", n, err)
	}
	if err != nil && w.queued() != queued {
		w.t.Fatalf("a frame that was refused (%v) arrived", err)
	}
	for _, l := range w.links {
		if l.queue.reserved != 0 {
			w.t.Fatalf("%s has %d slots reserved after Send", l.Name(), l.queue.reserved)
		}
	}
	// No loops: each device is visited at most once for each VID that a frame may turn into.
	if hops := len(w.f.path.hops); hops > 8*8 {
		w.t.Fatalf("a frame took %d hops", hops)
	}
}

func (w *world) queued() (frames uint64) {
	for _, l := range w.links {
		frames += l.queue.filled
	}
	return frames
}

func (w *world) poll(l *Link, room int) {
	buf := make([]transport.Frame, room)
	n, err := l.Poll(buf)
	if err != nil && !l.closed.Load() {
		w.t.Fatal(err)
	}
	for _, f := range buf[:n] {
		if f.Src == l.MAC() {
			w.t.Fatalf("%s received its own frame", l.Name())
		}
		if f.Dst != l.MAC() && f.Dst != transport.Broadcast && !(f.Dst == fuzzGroup && w.joined[l]) {
			w.t.Fatalf("%s with address %v received a frame for %v", l.Name(), l.MAC(), f.Dst)
		}
		want := payloadOf(numberOf(f))
		if !bytes.HasPrefix(f.Payload, want) || len(f.Payload) != max(len(want), minPayload) {
			w.t.Fatalf("%s received %x, sent was %x", l.Name(), f.Payload, want)
		}
	}
}
