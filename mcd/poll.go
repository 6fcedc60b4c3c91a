package mcd

import (
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/hrtimer"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// One goroutine at a time polls the endpoint's links: the holder of the poll lock.
//
//	a goroutine waits   it takes the lock (it leads), masks the wake-ups of the links' own
//	                    goroutines, and polls: see Await
//	several wait        one leads; the others watch their own completions and try to lead in turn
//	it is claimed       the leader gives the lock up for a moment: see claimPoll
//	too many wait       those beyond what maxSpinners says sleep
//	they wait long      the leader unmasks the wake-ups; all sleep, one in the link: see sleeper
//	nobody waits        each link's own goroutine sleeps in link.Wait; a frame wakes it; it takes
//	                    the lock and polls: see linkLoop
//
// Masking matters. A goroutine that is woken by each frame while a leader spins takes the leader's
// core, and the 99th percentile of the latency goes from microseconds to milliseconds. Masking a
// ring and unmasking it cost 0.35 µs each. So a leader that has got its message leaves the wake-ups
// masked, for it will be back soon; if nobody polls for unmaskAfter, the unmaskLoop unmasks them.

// pollBatch is how many frames are taken from a link at once: enough to share the cost of a call,
// few enough that the link gets its memory back soon.
const pollBatch = 32

// pollState is what polling needs. All but the lock, what wakes and what counts belongs to the
// lock's holder.
type pollState struct {
	sleeper    sleeper
	lock       atomic.Uint64 // counts up as it is taken, and as it is given back: odd while it is held
	batch      batch         // of the frames
	header     wire.Header   // of the frame that is being parsed
	authHeader wire.Auth     // likewise, if the endpoint has keys
	owed       []*Port       // those whose Receive was told that more follows

	maskers      []transport.WakeupMasker // the links that can mask wake-ups
	quickPolls   bool                     // all links do, which then poll without a system call
	wakeupsOff   bool
	unfinished   atomic.Bool   // the last holder of the lock has left masks, frames or last calls
	masked       chan struct{} // signalled when the unmaskLoop has something to do, or is to end
	tick         *hrtimer.Timer
	ticks        chan struct{} // signalled when tick fires, for the unmaskLoop
	ticking      atomic.Bool   // the unmaskLoop waits for that
	postponed    monotime.Time // when a poller has set tick last
	streams      atomic.Int32  // links' goroutines that stay awake, and unmask the wake-ups themselves
	spinners     atomic.Int32  // goroutines that spin
	excess       atomic.Int32  // goroutines that sleep as enough spin
	claims       atomic.Int32  // goroutines to which a leader gives the lock
	pollWaiters  atomic.Int32  // goroutines that wait for the lock: these, and links' own
	pollUnlocked chan struct{} // signalled for them when the lock is given back

	frames   [pollBatch]transport.Frame
	messages [pollBatch]Message // of the frames
}

func (s *pollState) init(links []transport.Link, precise bool) {
	s.sleeper.init(links)
	s.masked, s.ticks = make(chan struct{}, 1), make(chan struct{}, 1)
	s.tick = hrtimer.New(precise, func() {
		select {
		case s.ticks <- struct{}{}:
		default: // one is there
		}
	})
	s.pollUnlocked = make(chan struct{}, len(links)+1) // and the authLoop
	for _, l := range links {
		if m, ok := transport.As[transport.WakeupMasker](l); ok {
			s.maskers = append(s.maskers, m)
		}
	}
	s.quickPolls = len(s.maskers) == len(links)
}

// tryLockPoll takes the poll lock if it is free.
func (s *pollState) tryLockPoll() bool {
	n := s.lock.Load()
	return !isHeld(n) && s.lock.CompareAndSwap(n, n+1)
}

// isHeld reports whether the lock was held when its count was n.
func isHeld(n uint64) bool { return n%2 != 0 }

// turns returns how often the lock was given back.
func (s *pollState) turns() uint64 { return s.lock.Load() / 2 }

// turnsBegun returns how often the lock was taken.
func (s *pollState) turnsBegun() uint64 { return (s.lock.Load() + 1) / 2 }

// unlockPoll gives the poll lock back, once it has said what is left: see rests.
func (s *pollState) unlockPoll() {
	left := len(s.owed) > 0 || !s.batch.isOver()
	if unfinished := left || s.wakeupsOff; s.unfinished.Load() != unfinished {
		s.unfinished.Store(unfinished)
	}
	if left && !s.wakeupsOff {
		s.wakeUnmaskLoop()
	}
	s.lock.Add(1)
	if n := s.pollWaiters.Load(); n > 0 {
		s.wakePollWaiters(int(n))
	}
}

// wakePollWaiters lets n goroutines that wait for the lock try again.
func (s *pollState) wakePollWaiters(n int) {
	for range n {
		select {
		case s.pollUnlocked <- struct{}{}:
		default: // as many as could wait are woken already
		}
	}
}

// maskWakeups has the links' goroutines sleep through arrivals until the unmaskLoop unmasks them.
// The caller holds the lock.
func (s *pollState) maskWakeups() {
	if s.setMasks(true) {
		s.wakeUnmaskLoop()
	}
}

// setMasks has the links' goroutines sleep through arrivals, or no longer, and reports whether that
// is new. The caller holds the lock.
func (s *pollState) setMasks(on bool) (changed bool) {
	if s.wakeupsOff == on {
		return false
	}
	s.wakeupsOff = on
	for _, m := range s.maskers {
		m.MaskWakeups(on)
	}
	return true
}

func (s *pollState) wakeUnmaskLoop() {
	select {
	case s.masked <- struct{}{}:
	default: // it is awake
	}
}

// poll takes one batch from each link and delivers it, after what a Receive function that did not
// return has left of the last one. It returns how many frames there were, of these one. more
// says that the caller polls again at once. The caller holds the lock.
func (e *Endpoint) poll(more bool) int {
	total, last := 0, len(e.nics)-1
	if !e.batch.isOver() { // before the link has its frames back
		total++
		e.receiveRest(true)
	}
	for i := range e.nics {
		n, _ := e.nics[i].link.Poll(e.frames[:]) // a link that fails tells its linkLoop, too
		e.receive(i, e.frames[:n], more || i < last)
		if l := e.nics[i].auth; n > 0 && l != nil && l.roamer != nil {
			l.serve()
		}
		total += n
	}
	if !more {
		e.onIdle()
	}
	return total
}

// owe notes whether a port's Receive was told that more follows. The caller holds the lock.
func (s *pollState) owe(p *Port, more bool) {
	p.owed = more
	if more {
		s.owed = append(s.owed, p)
		return
	}
	s.owed = slices.DeleteFunc(s.owed, func(q *Port) bool { return q == p })
}

// onIdle makes the last call of the ports that were told that more follows. The caller holds the
// lock.
func (s *pollState) onIdle() {
	for len(s.owed) > 0 {
		p := s.owed[0]
		p.owed = false
		s.owed = slices.Delete(s.owed, 0, 1) // before the call, which may not return
		if p.isOpen() {
			p.opts.Receive(nil, false)
		}
	}
}

// Progress polls the links once, without waiting, unless another goroutine is polling, and delivers
// what arrived. It reports whether anything did. Programs that wait in Recv or Await need not call
// it.
func (e *Endpoint) Progress() bool {
	if !e.tryLockPoll() {
		return false
	}
	n := e.pollOnce()
	e.flush()
	return n > 0
}

// pollOnce polls and gives the poll lock back, also if a Receive function panics.
func (e *Endpoint) pollOnce() int {
	defer e.unlockPoll()
	n := e.poll(true)
	if n == 0 {
		e.onIdle()
	}
	return n
}

// flush tries to send what was posted while a link had no room.
func (e *Endpoint) flush() {
	for i := range e.nics {
		e.nics[i].queue.flush()
	}
}
