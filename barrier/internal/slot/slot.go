// Package slot is what the Center of a barrier and its unit share: for each barrier number one slot
// in memory that both map. The unit, a program in the path of the Center's NIC, counts the frames
// that arrive there and sends the release; the Center's process arrives by the same words.
//
//	count      generation (32 bits), the Center waits (1 bit), how many have arrived (31 bits)
//	arrived    for each 32 ranks: generation (32 bits), a bit for each rank that has arrived
//
// Who arrives sets its bit by compare-and-swap, in one step with a look at the generation: a late
// double of one generation cannot count for the next. Who has set a bit that was not set adds 1 to
// the count. Who makes the count full has won: it begins the next generation, and then sends the
// release of this one. So no arrival of the next generation can come before its slot is ready.
//
// The one exception: a unit that makes the count full while the Center waits passes that frame on,
// and leaves the count full. The Center's process is woken by it, and wins.
//
// Source: SCMD §3.
package slot

import "sync/atomic"

// MaxRanks is how many members a slot has room for.
const MaxRanks = 1024

const (
	ranksPerWord    = 32
	generationShift = 32
	waits           = 1 << 31
	closed          = 1 << 30 // a count that nothing makes full, with generation 0
)

// Slot is one barrier number's state. Its layout is that of struct slot in offload.bpf.c.
type Slot struct {
	count   atomic.Uint64
	arrived [MaxRanks / ranksPerWord]atomic.Uint64
	// What follows is written while the slot is closed.
	needed  uint32
	used    uint32 // words of arrived
	label   uint32 // of the arrivals
	release [releaseRoom]byte
	_       [4]byte
}

// Result is what became of an arrival.
type Result uint8

// The results.
const (
	Stale   Result = iota // the slot is in another generation
	Double                // it has arrived before
	Counted               // others are missing
	Last                  // all have arrived: the caller has won
	Left                  // all have arrived, and the Center waits: it wins
)

func word(generation uint32) uint64 { return uint64(generation) << generationShift }

// Open begins a generation, of a slot that is closed.
func (s *Slot) Open(generation uint32) {
	for i := range s.used {
		s.arrived[i].Store(word(generation))
	}
	s.count.Store(word(generation))
}

// Configure sets what the slot is for. It is closed until Open.
func (s *Slot) Configure(c *Config) {
	s.count.Store(closed)
	for i := range s.arrived {
		s.arrived[i].Store(0)
	}
	s.needed, s.used = uint32(c.Ranks), uint32((c.Ranks+ranksPerWord-1)/ranksPerWord)
	s.label = uint32(c.Label)
	clear(s.release[:])
	copy(s.release[:], c.Release)
}

// Arrive notes a rank's arrival.
func (s *Slot) Arrive(rank int, generation uint32) Result {
	bits, bit := &s.arrived[rank/ranksPerWord], uint64(1)<<(rank%ranksPerWord)
	for {
		old := bits.Load()
		switch {
		case old>>generationShift != uint64(generation):
			return Stale
		case old&bit != 0:
			return Double
		case !bits.CompareAndSwap(old, old|bit):
			continue
		}
		switch count := uint32(s.count.Add(1)); {
		case count&^waits != s.needed:
			return Counted
		case count&waits != 0:
			return Left
		}
		return Last
	}
}

// Next begins the generation after a full one. Who has won calls it, before it sends the release.
func (s *Slot) Next(generation uint32) { s.Open(generation + 1) }

// Phase is how far the slot's generation is.
type Phase uint8

// The phases.
const (
	Filling Phase = iota // arrivals are missing
	Ours                 // all have arrived, and the unit has left the release to the Center
	Theirs               // all have arrived, and who has won begins the next generation
	Closed
)

// State returns the slot's generation and its phase.
func (s *Slot) State() (generation uint32, p Phase) {
	c := s.count.Load()
	switch {
	case c>>generationShift == 0:
		return 0, Closed
	case uint32(c)&^waits != s.needed:
		p = Filling
	case c&waits != 0:
		p = Ours
	default:
		p = Theirs
	}
	return uint32(c >> generationShift), p
}

// Await says that the Center waits for a generation: it is to be woken at its end. False if all
// have arrived already, or the slot is in another generation.
func (s *Slot) Await(generation uint32) bool {
	for {
		old := s.count.Load()
		if old>>generationShift != uint64(generation) || uint32(old)&^waits == s.needed {
			return false
		}
		if s.count.CompareAndSwap(old, old|waits) {
			return true
		}
	}
}

// Unawait undoes Await: who makes the count full wins again. False if all have arrived already:
// then the Center has won, or the next generation begins.
func (s *Slot) Unawait(generation uint32) bool {
	for {
		old := s.count.Load()
		switch {
		case old>>generationShift != uint64(generation):
			return true
		case uint32(old)&^waits == s.needed:
			return false
		case s.count.CompareAndSwap(old, old&^waits):
			return true
		}
	}
}

// Arrived returns the word of ranks 32*i to 32*i+31, which is of a generation.
func (s *Slot) Arrived(i int) (generation, bits uint32) {
	w := s.arrived[i].Load()
	return uint32(w >> generationShift), uint32(w)
}

// Words returns how many words Arrived has.
func (s *Slot) Words() int { return int(s.used) }

// Close closes the slot in a generation of which arrivals are missing: no count becomes full any
// more. Then Drain takes what has arrived. False if all have, or the slot is in another generation.
func (s *Slot) Close(generation uint32) bool {
	for {
		old := s.count.Load()
		g := uint32(old >> generationShift)
		if g != 0 && (g != generation || uint32(old)&^waits == s.needed) {
			return false
		}
		if s.count.CompareAndSwap(old, closed) {
			return true
		}
	}
}

// Drain takes the i-th word of arrivals of a closed slot. What comes later is not counted.
func (s *Slot) Drain(i int) (bits uint32) { return uint32(s.arrived[i].Swap(0)) }
