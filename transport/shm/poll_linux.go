package shm

import (
	"runtime"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// receiver is what the polling goroutine remembers.
type receiver struct {
	rings records.Set // those that may have something
	turn  int         // the ring that is looked at first
	lent  []*source   // those with frames of the last Poll
	over  []*source   // those to be forgotten
}

// Poll implements transport.Link. It makes no system call, unless a station sleeps until there is
// room in its ring, or has gone, or is cut off. If there is nothing, it looks at one word of memory
// for each 64 stations. Rings take turns in being first.
func (l *Link) Poll(frames []transport.Frame) (n int, err error) {
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	if l.wire != nil {
		n, err = l.pollBoth(frames)
	} else {
		n = l.pollMemory(frames)
	}
	runtime.KeepAlive(l) // its memory is not for others before its last write
	return n, err
}

// pollMemory gives back the frames of the last call, and takes the next ones.
func (l *Link) pollMemory(frames []transport.Frame) (n int) {
	if len(l.lent) > 0 {
		l.giveBack()
	}
	if len(frames) == 0 || !l.bell.Take(int(l.used.Load()), &l.rings) {
		return 0
	}
	first, at := l.turn, l.turn
	for again := false; n < len(frames); {
		i := l.rings.Next(at)
		if i < 0 && !again {
			again, at = true, 0
			continue
		}
		if i < 0 || again && i >= first {
			break
		}
		n += l.takeFrom(i, frames[n:])
		at = i + 1
	}
	l.turn = at % MaxStations
	if left := !l.rings.Empty(); left != l.left.Load() {
		l.left.Store(left)
		if left && !l.masked.Load() {
			l.alert() // who waits has looked when the bits were here
		}
	}
	if n > 0 {
		size := 0
		for i := range frames[:n] {
			size += frames[i].WireLen()
		}
		l.rx.frames.Add(uint64(n))
		l.rx.bytes.Add(uint64(size))
	}
	return n
}

// giveBack gives back the memory of the last Poll's frames.
func (l *Link) giveBack() {
	for _, s := range l.lent {
		if s.reader.Release() {
			l.tellRoom(s)
		}
	}
	l.lent = l.lent[:0]
	for i, s := range l.over {
		l.forget(s)
		l.over[i] = nil
	}
	l.over = l.over[:0]
}

// tellRoom wakes the station that waits for room in the ring that it writes. Its Wait ends, and
// what it could not send is tried again.
func (l *Link) tellRoom(from *source) {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	if s := from.station; s.writer != nil {
		s.ring()
	}
}

// maxLooks is how many frames of one ring a Poll looks at, so that no stream of frames that nobody
// wants can hold it: some 20 µs.
const maxLooks = 1024

// takeFrom takes frames from a ring that may have some, and notes if it has no more. A Poll calls
// it once for a ring at most.
func (l *Link) takeFrom(i int, frames []transport.Frame) (n int) {
	s := l.sources[i].Load()
	if s == nil {
		l.rings.Remove(i)
		return 0
	}
	if !s.polled && !s.claimed.CompareAndSwap(false, true) {
		l.rings.Remove(i) // lose has it, and rings again if there is something
		return 0
	}
	s.polled = true
	l.lent = append(l.lent, s)
	dead := s.dead.Load() // before the last look: nothing is written after it
	if dead && s.end == 0 {
		s.end = s.reader.Taken() + uint64(len(s.memory)) // more than was there
	}
	for looks := 0; n < len(frames) && looks < maxLooks; looks++ {
		if dead && s.reader.Taken() >= s.end { // who keeps the memory writes on
			l.over = append(l.over, s)
			return n
		}
		switch s.reader.Next(&frames[n]) {
		case records.Done:
			if len(frames[n].Payload) > l.mtu { // a station of another MTU
				l.rx.malformed.Add(1)
			} else if l.wants(&frames[n]) {
				n++
			}
			continue
		case records.Broken:
			l.rx.malformed.Add(1)
			_ = s.station.conn.Close() // keep does the rest
		case records.None:
			if s.reader.Full() {
				return n
			}
			if !dead {
				l.rings.Remove(i)
				return n
			}
		}
		l.over = append(l.over, s) // and stays among the rings until then
		return n
	}
	return n
}

// wants reports whether a frame is for this link. One around a wire for frames of one EtherType is
// for that one, too.
func (l *Link) wants(f *transport.Frame) bool {
	if l.etherType != transport.EtherTypeAny && f.EtherType != l.etherType {
		return false
	}
	return f.Dst == l.mac || f.Dst.IsMulticast() && l.joined.Has(f.Dst)
}
