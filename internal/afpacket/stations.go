package afpacket

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// stations is who takes trains. A station is sent a train of frames only while it has shown lately
// that trains arrive there: a host of an older version, and a path that does not pass IPv4, get
// frames as they are.
//
//	state    event                      next     sends
//	unknown  frames that could go as    asked    an offer
//	         a train
//	asked    an answer to the offer     takes    -
//	asked    such frames, retry is due  asked    an offer, a new one; retry twice as late
//	takes    such frames, every 250 ms  takes    an offer
//	takes    no answer for 875 ms       asked
//
// An offer is itself a train, of two segments: both must arrive, which shows that both kernels, and
// all that is between, can do with trains. It has a random number, which the answer repeats: nobody
// who does not see the offer can answer it.
//
// It is a core: time and chance are arguments.
type stations struct {
	byKey  map[stationKey]*station
	last   *station           // that was asked for
	forgot monotime.Time      // when those that are no longer sent to were last dropped
	random func() uint64      // the offers' numbers
	halves [maxHalves]control // first segments, each of what may be a control message
	oldest int                // of halves: the next one gives way
}

// stationKey is a station, and the VLAN by which frames reach it: another one may be another path.
type stationKey struct {
	mac transport.MAC
	vid int32 // -1: untagged
}

type station struct {
	key     stationKey
	offer   uint64        // the last offer's number
	offered monotime.Time // when
	retry   time.Duration // to the next offer
	proven  monotime.Time // when the last answer came; zero: none
	ordered bool          // plain frames and trains to it keep their order
}

// The bounds of stations, each with its reason.
const (
	// maxStations is how many are remembered: as many as a segment sensibly has. More at a time are
	// not offered trains.
	maxStations = 4096
	// firstRetry to lastRetry is how long an offer waits for an answer: some round trips, and what
	// costs an old host nothing.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Second
	// renewal is how often a station that takes trains is asked again: 74 bytes each way.
	renewal = 250 * time.Millisecond
	// provenFor is how long an answer holds: three offers may be lost. It is less than protocols
	// above wait for a peer (2 s), by some of their retransmissions: these may go as trains.
	provenFor = 3*renewal + renewal/2
	// forgetAfter is how long a station is remembered that no frames go to, where there are too
	// many. A station that frames go to which could be a train is offered them every second.
	forgetAfter = 10 * lastRetry
	// maxHalves is how many messages may be under way at a time in two packets, whose segments come
	// mixed: those of stations that begin to send to one at the same moment.
	maxHalves = 64
)

func newStations(random func() uint64) *stations {
	return &stations{byKey: map[stationKey]*station{}, random: random}
}

func keyOf(f *transport.Frame) stationKey {
	if !f.Tagged {
		return stationKey{f.Dst, -1}
	}
	return stationKey{f.Dst, int32(f.Tag.VID)}
}

// find returns the station that a frame is for, or nil if there is none.
func (s *stations) find(f *transport.Frame) *station {
	key := keyOf(f)
	if s.last != nil && s.last.key == key {
		return s.last
	}
	st := s.byKey[key]
	if st != nil {
		s.last = st
	}
	return st
}

// takes reports whether frames like f may go to their station as a train. If offer is not 0, an
// offer of that number is to be sent there.
func (s *stations) takes(now monotime.Time, f *transport.Frame) (st *station, offer uint64) {
	if st = s.find(f); st == nil {
		if len(s.byKey) >= maxStations && !s.forget(now) {
			return nil, 0
		}
		st = &station{key: keyOf(f), retry: firstRetry}
		s.byKey[st.key], s.last = st, st
		return nil, s.offer(now, st)
	}
	taking := st.taking(now)
	if now.Sub(st.offered) >= st.retry {
		if !taking {
			st.retry = min(2*st.retry, lastRetry)
		}
		offer = s.offer(now, st)
	}
	if !taking {
		st = nil
	}
	return st, offer
}

// forget makes room: it drops the stations that were not offered trains for a while. It reports
// whether there were any.
func (s *stations) forget(now monotime.Time) bool {
	if now.Sub(s.forgot) < forgetAfter {
		return false
	}
	s.forgot = now
	for key, st := range s.byKey {
		if now.Sub(st.offered) >= forgetAfter {
			delete(s.byKey, key)
		}
	}
	s.last = nil
	return len(s.byKey) < maxStations
}

func (st *station) taking(now monotime.Time) bool {
	return !st.proven.IsZero() && now.Sub(st.proven) < provenFor
}

// offer returns the number of a new offer, not 0.
func (s *stations) offer(now monotime.Time, st *station) uint64 {
	st.offered, st.offer = now, s.random()|1
	return st.offer
}

// answered takes an answer, and reports whether it is to the last offer.
func (s *stations) answered(now monotime.Time, c *control) bool {
	st := s.byKey[stationKey{c.from, c.vid}]
	if st == nil || st.offer == 0 || st.offer != c.number {
		return false
	}
	st.offer, st.proven, st.ordered = 0, now, c.ordered
	st.retry = renewal
	return true
}

// refused takes into account that the kernel or the NIC did not take a train to the station: it is
// asked again, as late as one that does not answer.
func (st *station) refused(now monotime.Time) {
	st.offer, st.proven = 0, monotime.Time{}
	st.offered, st.retry = now, lastRetry
}

// control is an offer or an answer, or the first segment of one.
type control struct {
	kind    trainKind
	from    transport.MAC // who sent it
	vid     int32         // of the offer as it was sent; -1: untagged
	ordered bool          // its sender receives all frames by one queue
	number  uint64
}

// controlLen is the length of a segment of an offer or answer, in bytes:
//
//	0  index of the segment, 0 or 1    1  flags: 1 tagged, 2 ordered
//	2  VID of the offer as sent        4  0                      8  number
const controlLen = 16

const (
	controlTagged  = 1
	controlOrdered = 2
)

// append appends both segments.
func (c *control) append(b []byte) []byte {
	var flags byte
	var vid uint16
	if c.vid >= 0 {
		flags, vid = controlTagged, uint16(c.vid)
	}
	if c.ordered {
		flags |= controlOrdered
	}
	for index := range byte(2) {
		b = append(b, index, flags)
		b = binary.BigEndian.AppendUint16(b, vid)
		b = append(b, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, c.number)
	}
	return b
}

// receive takes a segment of a kind and returns what it ends, if that is whole.
func (s *stations) receive(kind trainKind, from transport.MAC, b []byte) (c control, whole bool) {
	if len(b) != controlLen || b[0] > 1 {
		return c, false
	}
	c = control{kind: kind, from: from, vid: -1, ordered: b[1]&controlOrdered != 0}
	c.number = binary.BigEndian.Uint64(b[8:])
	if b[1]&controlTagged != 0 {
		c.vid = int32(binary.BigEndian.Uint16(b[2:]) & 0xfff)
	}
	at := slices.Index(s.halves[:], c)
	if b[0] == 1 {
		if at >= 0 {
			s.halves[at] = control{}
		}
		return c, at >= 0
	}
	if at < 0 {
		s.halves[s.oldest] = c
		s.oldest = (s.oldest + 1) % maxHalves
	}
	return c, false
}
