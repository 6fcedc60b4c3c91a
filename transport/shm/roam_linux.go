package shm

import (
	"hash/maphash"

	"github.com/rawlane/rawlane/transport"
)

// roamingWire is a wire that is told where stations are by their authentic frames, as a udp link
// with keys is. Of a broadcast of a station of this host it is memory's copy that is handed out,
// and authenticated; where its sender is on the wire the other copy says, which is dropped. Once
// memory's is authentic, the first copy that the wire has had of the same bytes is, too: so it is
// with every frame of a wire.
//
//	wire's copy     dropped, and noted, if the wire has a note where it came from
//	memory's copy   authentic -> the wire's is called so: one that is noted, or the next to come
//
// What such a station is asked, and answers, goes through memory, too. It says by which place it
// would leave, so that the wire learns whether its station is where the copy came from.
type roamingWire struct {
	transport.Link
	transport.Roamer
	seed    maphash.Seed
	on      bool              // who polls authenticates frames
	near    *table            // the polling goroutine's, as what follows: those whose copies were dropped
	dropped [maxTwins]dropped // the wire's copies whose twins are not known to be authentic
	proved  [maxTwins]uint64  // sums of memory's copies whose twins have not come
	drops   int
	proofs  int
	copies  map[transport.MAC]transport.Frame // the wire's last authentic ones, of stations of this host
}

// maxCopies bounds those.
const maxCopies = 1 << 10

// dropped is a frame of the wire, without payload.
type dropped struct {
	sum   uint64 // 0: none
	frame transport.Frame
}

// maxTwins bounds how many copies wait for the other one: the last ones. The two come within
// microseconds of each other; where they do not, the next broadcast tells as well.
const maxTwins = 16

// newRoamingWire returns nil for a wire that needs not be told.
func newRoamingWire(wire transport.Link) *roamingWire {
	roamer, ok := transport.As[transport.Roamer](wire)
	if !ok {
		return nil
	}
	return &roamingWire{Link: wire, Roamer: roamer, seed: maphash.MakeSeed(), near: new(table),
		copies: make(map[transport.MAC]transport.Frame)}
}

// Unwrap implements transport.Wrapper.
func (r *roamingWire) Unwrap() transport.Link { return r.Link }

// Authenticates implements transport.Roamer.
func (r *roamingWire) Authenticates(overhead int) {
	r.on = true
	r.Roamer.Authenticates(overhead)
}

// Authentic implements transport.Roamer. What came by the wire is the wire's, which has no note of
// what came through memory.
func (r *roamingWire) Authentic(f *transport.Frame) {
	r.Roamer.Authentic(f)
	if f.Dst != transport.Broadcast || r.near.byMAC[f.Src] == nil {
		return
	}
	sum := r.sum(f)
	for i := range r.dropped {
		at := (r.drops + i) % maxTwins // the first that came: later ones may be sent by who has heard it
		if d := &r.dropped[at]; d.sum == sum {
			r.authentic(&d.frame)
			d.sum = 0
			return
		}
	}
	r.proved[r.proofs] = sum
	r.proofs = (r.proofs + 1) % maxTwins
}

// authentic tells the wire of a copy of its own.
func (r *roamingWire) authentic(f *transport.Frame) {
	if len(r.copies) >= maxCopies {
		clear(r.copies)
	}
	r.copies[f.Src] = transport.Frame{Dst: f.Dst, Src: f.Src, Origin: f.Origin}
	r.Roamer.Authentic(f)
}

// onWire returns the frame by which the wire knows where a frame's station is: itself, if it came
// that way, and else the last copy of that station's; nil if there is none.
func (r *roamingWire) onWire(f *transport.Frame) *transport.Frame {
	if r.near.byMAC[f.Src] == nil {
		return f
	}
	if c, ok := r.copies[f.Src]; ok {
		return &c
	}
	return nil
}

// CameFrom implements transport.Roamer.
func (r *roamingWire) CameFrom(f *transport.Frame) transport.Place {
	if f = r.onWire(f); f == nil {
		return transport.Place{}
	}
	return r.Roamer.CameFrom(f)
}

// Answered implements transport.Roamer.
func (r *roamingWire) Answered(f *transport.Frame, direct bool) (settled bool) {
	f = r.onWire(f)
	return f == nil || r.Roamer.Answered(f, direct)
}

// polls says which stations are on this host, as the wire is polled.
func (r *roamingWire) polls(t *table) {
	if r != nil {
		r.near = t
	}
}

// drop is told of a copy that is dropped.
func (r *roamingWire) drop(f *transport.Frame) {
	if r == nil || !r.on || f.Dst != transport.Broadcast || f.Origin == 0 {
		return
	}
	sum := r.sum(f)
	for i := range r.proved {
		if r.proved[i] == sum {
			r.authentic(f)
			r.proved[i] = 0
			return
		}
	}
	d := dropped{sum, *f}
	d.frame.Payload = nil
	r.dropped[r.drops] = d
	r.drops = (r.drops + 1) % maxTwins
}

// sum returns a hash of a frame, which nobody can foresee. It is not 0.
func (r *roamingWire) sum(f *transport.Frame) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	var header [transport.MaxHeaderLen]byte
	_, _ = h.Write(header[:f.PutHeader(header[:])]) // it does not fail
	_, _ = h.Write(f.Payload)
	return max(h.Sum64(), 1)
}
