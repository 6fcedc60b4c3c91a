package shm

import (
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// station is another link that is reached through memory: the ring and the bell that it reads.
//
//	met        both have each other's memory: in the table
//	cut off    it has written what cannot be: its connection is closed, and nothing more is sent
//	gone       its connection has ended: out of the table, its memory retired
//
// What it had sent before it went is still in its source, which is forgotten once that is empty, or
// as soon as a newcomer needs its bit and there is no other.
type station struct {
	mac    transport.MAC
	pid    int
	conn   *net.UnixConn
	source *source
	gone   atomic.Bool // its connection has ended

	// Guarded by Link.txMu.
	writer  *records.Writer // nil: gone
	bell    *records.Bell
	bit     int // of bell
	wakeFD  int
	woken   uint64 // the sleep in which it was woken last
	rung    bool   // in Link.rung: to be committed, and its bell rung
	refused bool   // cut off
	full    bool   // its ring had no room once: a Wait may be for that
	still   still

	ringMemory, bellMemory []byte
}

// still is for how long a full ring was not read.
type still struct {
	read  uint64 // by then
	last  time.Time
	since time.Duration
}

// Bounds of that.
const (
	// stopsAfter is how long a full ring may go unread until its station counts as stopped. It is
	// less than protocols above wait for a peer (2 s).
	stopsAfter = time.Second
	// stillStep is how much the time between two refusals counts: this process may have been
	// stopped meanwhile, with the other one.
	stillStep = 50 * time.Millisecond
)

// refused notes that there was no room, and reports whether the station counts as stopped: by a
// debugger, or by a signal.
func (s *still) refused(read uint64, now time.Time) bool {
	if read != s.read || s.last.IsZero() {
		*s = still{read: read, last: now}
		return false
	}
	s.since += min(now.Sub(s.last), stillStep)
	s.last = now
	return s.since >= stopsAfter
}

// source is a ring that a link reads.
type source struct {
	bit     int      // of the link's own bell
	station *station // that writes it
	reader  *records.Reader
	memory  []byte
	dead    atomic.Bool // nothing more is written, but by who keeps the memory all the same
	end     uint64      // the polling goroutine's: what is taken of a dead one at most; 0: not known yet
	claimed atomic.Bool // by the polling goroutine, which forgets it then; or by lose
	polled  bool        // it is the polling goroutine that has
}

// table is the stations that a link reaches through memory.
type table struct {
	byMAC map[transport.MAC]*station
	all   []*station // by MAC, so that copies leave in one order
}

// Stations returns the stations that are reached through memory now, by their addresses.
func (l *Link) Stations() []Station {
	var s []Station
	for _, o := range l.stations.Load().all {
		s = append(s, Station{o.mac, o.pid})
	}
	return s
}

// Folder returns where the links of the segment meet: only those that have the same one do.
func (l *Link) Folder() string { return l.folder.path }

// change replaces the table by one of the stations in met. The caller holds mu.
func (l *Link) change() {
	t := &table{byMAC: map[transport.MAC]*station{}}
	for _, s := range l.met {
		t.byMAC[s.mac] = s
	}
	for _, mac := range slices.SortedFunc(maps.Keys(t.byMAC), transport.MAC.Compare) {
		t.all = append(t.all, t.byMAC[mac])
	}
	l.stations.Store(t)
}

// admit puts a station into the table. One of the same address has gone, or will have soon: no two
// links of a segment have one. But the one that has gone may be met last, where both have connected
// while this process was stopped; the other one is in the table again when that is lost.
func (l *Link) admit(s *station) {
	l.sources[s.source.bit].Store(s.source)
	l.mu.Lock()
	l.met = append(l.met, s)
	alters := l.alters
	l.change()
	l.mu.Unlock()
	if alters {
		s.bell.Alter()
	}
	l.bell.Ring(s.source.bit) // it may have rung before there was a source
	l.poller.Look()
}

// lose takes a station that has gone out of the table, and retires the memory to which frames for
// it were written. What it may have done to the eventfds that it had is undone: a Send that is
// blocked by that has txMu, and others may be blocked that are to wake this link.
func (l *Link) lose(s *station) {
	s.gone.Store(true)
	locked := make(chan struct{})
	theirs := l.apart(func() { drainUntil(locked, s.wakeFD) })
	ours := l.apart(l.drainOwn)
	l.mu.Lock()
	l.met = slices.DeleteFunc(l.met, func(o *station) bool { return o == s })
	l.change()
	l.mu.Unlock()
	l.txMu.Lock()
	close(locked)
	full := s.full
	s.writer, s.bell = nil, nil // Send may still hold the old table
	l.memories.retire(s.ringMemory)
	l.memories.retire(s.bellMemory)
	l.txMu.Unlock()
	s.source.dead.Store(true)
	if s := s.source; s.claimed.CompareAndSwap(false, true) { // a link that only sends may never poll
		if s.reader.Waiting() {
			s.claimed.Store(false)
			l.leave(s)
		} else {
			l.forget(s)
		}
	}
	for i := range int(l.used.Load()) { // it may have cleared the bits of others
		if l.sources[i].Load() != nil {
			l.bell.Ring(i)
		}
	}
	if full {
		l.bell.Ring(s.source.bit) // as it would have, once there was room
	}
	l.poller.Look()
	theirs()
	ours()
}

// drainOwn drains the link's own eventfd. Who waits looks once more: what was read may have been
// there to wake it.
func (l *Link) drainOwn() {
	if fd := l.event.copy(); fd >= 0 {
		drain(fd)
		_ = unix.Close(fd) // nothing is written by closing it
		l.poller.Look()
	}
}

// leave leaves the frames of a source that is dead to Poll, or until its bit is needed.
func (l *Link) leave(s *source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := func(s *source) bool { return s.claimed.Load() }
	l.unread = append(slices.DeleteFunc(l.unread, taken), s)
}

// freeBit returns a bit of the link's bell for a new station's ring, or -1. Where all are taken, it
// drops what a station has left that has gone, if Poll has taken none of it: the oldest.
func (l *Link) freeBit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range MaxStations {
		if !l.bits[i] {
			l.bits[i] = true
			l.used.Store(max(l.used.Load(), int32(i+1)))
			return i
		}
	}
	for len(l.unread) > 0 {
		s := l.unread[0]
		l.unread = l.unread[1:]
		if s.claimed.CompareAndSwap(false, true) {
			l.lost += l.discard(s)
			l.free(s)
			l.bits[s.bit] = true
			return s.bit
		}
	}
	return -1
}

// discard takes what is in a dead source, and returns how many frames for this link that were.
func (l *Link) discard(s *source) (frames uint64) {
	var f transport.Frame
	for end := s.reader.Taken() + uint64(len(s.memory)); s.reader.Taken() < end && s.reader.Next(&f) == records.Done; {
		if len(f.Payload) <= l.mtu && l.wants(&f) {
			frames++
		}
		s.reader.Release()
	}
	return frames
}

// giveBit gives a bit back.
func (l *Link) giveBit(i int) {
	l.mu.Lock()
	l.bits[i] = false
	l.mu.Unlock()
}

// forget retires the memory of a source that is dead and empty. If Poll has taken frames from it,
// Poll calls it, as nobody else knows when its views are not used any more.
func (l *Link) forget(s *source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(s)
}

// free is forget, for who holds mu. Close frees what a Poll that is in progress forgets behind it:
// memory that was retired twice would be the place of two others.
func (l *Link) free(s *source) {
	if !l.sources[s.bit].CompareAndSwap(s, nil) {
		return
	}
	l.lost += s.reader.Dropped()
	l.memories.retire(s.memory)
	l.bits[s.bit] = false
}
