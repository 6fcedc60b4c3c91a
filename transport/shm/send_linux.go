package shm

import (
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// earlyCommit is after how many bytes a station is shown what it was sent, although there is more
// in the same call: so it reads while more is written.
const earlyCommit = 16 << 10

// sender is what Send remembers. Link.txMu guards it.
type sender struct {
	rung    []*station // stations with frames that they do not see yet
	table   *table     // where last was found
	last    *station   // of the last frame that was for one station
	lastFor transport.MAC
}

// station returns the one with an address, or nil: most often that of the frame before.
func (s *sender) station(t *table, mac transport.MAC) *station {
	if t != s.table || mac != s.lastFor {
		s.table, s.lastFor, s.last = t, mac, t.byMAC[mac]
	}
	return s.last
}

// Send implements transport.Link. Each receiver sees what it was sent at once, and is woken once at
// most. Without a wire, frames for stations that are not there are lost.
func (l *Link) Send(frames []transport.Frame) (n int, err error) {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	if l.wire == nil {
		n, err = l.sendMemory(frames)
	} else {
		n, err = l.sendBoth(frames)
	}
	for _, s := range l.rung {
		l.show(s)
		s.rung = false
	}
	l.rung = l.rung[:0]
	l.countSent(frames[:n], err)
	return n, err
}

// countSent counts frames that were taken, and the one that was not.
func (l *Link) countSent(frames []transport.Frame, err error) {
	size := 0
	for i := range frames {
		size += frames[i].WireLen()
	}
	l.tx.frames.Add(uint64(len(frames)))
	l.tx.bytes.Add(uint64(size))
	switch err {
	case nil:
	case transport.ErrBusy: //nolint:errorlint // the very value, on the data path
		l.tx.busy.Add(1)
	default:
		l.tx.refused.Add(1)
	}
}

// sendMemory sends frames on a link that stands alone.
func (l *Link) sendMemory(frames []transport.Frame) (int, error) {
	t := l.stations.Load()
	for i := range frames {
		f := &frames[i]
		if err := transport.CheckFrame(f, l.mtu); err != nil {
			return i, err
		}
		if f.Dst.IsMulticast() {
			l.copyToAll(t, f)
		} else if s := l.station(t, f.Dst); s != nil && l.put(s, f) == records.None {
			return i, transport.ErrBusy
		}
	}
	return len(frames), nil
}

// put writes a frame to a station's ring. The result is None if there is no room but will be, and
// Broken if the station will not take it: it is gone, or cut off. What is for one that does not
// read for long is dropped, as on a wire: what waits for it would keep a program's broadcasts, and
// all behind these, from going.
func (l *Link) put(s *station, f *transport.Frame) records.Result {
	if s.writer == nil || s.refused {
		return records.Broken
	}
	result := s.writer.Put(f, l.mac)
	if result == records.None && !f.Dst.IsMulticast() {
		l.show(s) // it has to be read before there is room
		s.writer.Want()
		s.full = true
		result = s.writer.Put(f, l.mac)
	}
	switch result {
	case records.Done:
		if !s.rung {
			s.rung = true
			l.rung = append(l.rung, s)
		} else if s.writer.Hidden() > earlyCommit {
			l.show(s)
		}
	case records.Broken:
		l.cutOff(s)
	case records.None:
		if s.writer.Closed() {
			return records.Broken
		}
		if !f.Dst.IsMulticast() && s.still.refused(s.writer.Read(), time.Now()) {
			s.writer.Drop()
			return records.Done
		}
	}
	return result
}

// copyToAll writes a frame to all stations' rings. A copy for which there is no room is dropped.
func (l *Link) copyToAll(t *table, f *transport.Frame) {
	for _, s := range t.all {
		if l.put(s, f) == records.None {
			s.writer.Drop()
		}
	}
}

// show has a station look at what it was sent.
func (l *Link) show(s *station) {
	if s.writer == nil {
		return
	}
	s.writer.Commit()
	s.ring()
}

// ring has a station look at its ring, and wakes it if it sleeps. The caller holds txMu.
func (s *station) ring() {
	s.bell.Ring(s.bit)
	if sleep := s.bell.Asleep(); sleep != 0 && sleep != s.woken && !s.gone.Load() {
		s.woken = sleep
		signal(s.wakeFD)
	}
}

// cutOff ends the connection of a station that has written what cannot be. The caller holds txMu.
func (l *Link) cutOff(s *station) {
	s.refused = true
	l.rx.malformed.Add(1)
	_ = s.conn.Close() // keep does the rest
}
