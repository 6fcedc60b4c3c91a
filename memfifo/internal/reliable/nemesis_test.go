package reliable

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// nemesis is what a run does to its nodes besides the network's faults.
type nemesis struct {
	jumps   int               // clocks that jump ahead
	skew    []time.Duration   // by node: how far its clock has jumped
	points  bool              // marked points misbehave
	hit     map[string]uint64 // how often each did
	kept    []keptFrame       // frames that come again, much later
	refused uint64            // batches of which the NIC took a part
}

// keptFrame is a frame that a switch has kept.
type keptFrame struct {
	to, from int
	b        []byte
}

// chooseNemesis draws what a run suffers.
func (r *run) chooseNemesis(n int) {
	r.skew = make([]time.Duration, n)
	if r.often(.2) {
		r.jumps = 1 + r.rng.IntN(3)
	}
	r.points, r.hit = r.often(.25), map[string]uint64{}
}

// hits reports whether a marked point is to misbehave now, and counts it.
func (r *run) hits(point string, p float64) bool {
	if !r.points || !r.often(p) {
		return false
	}
	r.hit[point]++
	return true
}

// unleash plans the jumps. Two of one node lie apart: the time of one does not count as silence, that of
// several may.
func (r *run) unleash() {
	for i := range min(r.jumps, len(r.nodes)) {
		r.After(r.upTo(20*time.Millisecond), func() {
			r.skew[i] += r.upTo(10 * time.Second)
			for _, s := range r.nodes[i].peers {
				if s != nil && !s.dead {
					s.armed = false
					s.pump()
				}
			}
		})
	}
}

// misreceive is a driver that errs where it may.
func (r *run) misreceive(s *site, b []byte) {
	if !r.points || s.dead {
		s.receive(b)
		return
	}
	switch {
	case r.hits("refused receive", .01):
		return
	case r.hits("short frame", .01):
		var h Header
		if Parse(b[:r.rng.IntN(HeaderLen)], &h) == nil {
			r.fail("a part of a header is a frame")
		}
	case r.hits("frame beyond the limit", .005):
		long := append(slices.Clone(b), make([]byte, r.size)...)
		if Kind(b[0]&0xf) != Ack {
			s.receive(long)
		} else if Parse(long, new(Header)) == nil {
			r.fail("a SACK of %d bytes is one", len(long)-HeaderLen)
		}
	case Kind(b[0]&0xf) == Data && r.hits("frame of a stale incarnation", .01):
		stale := slices.Clone(b)
		binary.BigEndian.PutUint32(stale[4:], r.rng.Uint32()|1)
		s.receive(stale)
	case r.hits("same frame at once", .02):
		s.receive(b)
	case r.hits("frame kept for long", .01):
		r.kept = append(r.kept, keptFrame{s.node, s.peer, b})
	case len(r.kept) > 0 && r.hits("kept frame comes again", .05):
		k := r.kept[r.rng.IntN(len(r.kept))]
		r.nodes[k.to].peers[k.from].receive(k.b)
	}
	if s.dead {
		return
	}
	s.receive(b)
	if r.hits("early advance", .02) {
		s.tick(s.timer)
	}
	if r.hits("late timer", .01) {
		s.timer, s.armed = r.Now().Add(-1), true // what was set does nothing
		late := s.timer
		r.After(r.upTo(5*time.Millisecond), func() { s.tick(late) })
	}
	if r.hits("pumped for nothing", .02) {
		s.pump()
	}
}

// figures are counts by name. Their String is what bench/campaign reads.
type figures map[string]uint64

func (f figures) String() string {
	b, err := json.Marshal(map[string]uint64(f))
	if err != nil {
		panic(fmt.Sprint("figures: ", err))
	}
	return string(b)
}

// addTo adds a run's figures.
func (r *run) addTo(sum figures) {
	starts := uint64(0)
	for i := range r.nodes {
		starts += uint64(r.nodes[i].starts - 1)
	}
	c := r.net.Counters()
	for name, n := range map[string]uint64{
		"crashes": starts, "clock jumps": uint64(r.jumps), "cuts": uint64(r.cuts), "pauses": uint64(r.pauses),
		"connections ended": r.failures, "frames": c.Sent, "fault: lost": c.Lost, "fault: duplicated": c.Duplicated,
		"fault: reordered": c.Reordered, "fault: delayed": c.Delayed, "fault: corrupted": c.Corrupted,
		"fault: cut": c.Cut, "fault: misrouted": c.Misrouted, "fault: in a burst": c.Burst,
		"fault: ring full": c.Overrun, "fault: batch refused": r.refused,
	} {
		sum[name] += n
	}
	for point, n := range r.hit {
		sum["point: "+point] += n
	}
}
