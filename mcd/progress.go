package mcd

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Who polls?
//
//	a goroutine waits:  it leads: takes the poll lock, hushes the links so that their servers sleep on, and polls
//	several wait:       one leads, the others watch their own completions and try to lead in turn
//	they wait long:     the leader gives the links back to the servers, and all sleep
//	nobody waits:       each link's server sleeps in link.Wait; a frame wakes it; it takes the lock and polls
//
// Hushing matters: a server that is woken by each frame while a leader spins takes the leader's core, and
// the 99th percentile of the latency goes from microseconds to milliseconds. Hushing a ring and undoing it
// costs 0.35 µs each. So a leader that has got its message leaves the links hushed, for it will be back soon;
// if nobody polls for keepTick, the keeper gives them back.

// pollBatch is how many frames are taken from a link at once: enough to share the cost of a call, few
// enough that the link gets its memory back soon.
const pollBatch = 32

// ahead is how many frames lie between the one that is delivered and the one that is fetched meanwhile: one takes about as long as the other.
const ahead = 2

// pollState is what polling needs. All but lock, idle and napping belong to the holder of lock.
type pollState struct {
	lock     atomic.Bool
	frames   [pollBatch]transport.Frame
	quiet    []transport.WakeupMasker // the links that can be hushed
	hushed   bool
	header   wire.Header        // of the frame that is being parsed
	messages [pollBatch]Message // of the batch
	awaiting []*Port            // those with expectsMore

	turns   tally         // times that somebody led
	napping atomic.Int32  // servers that found the lock taken and wait for idle
	idle    chan struct{} // signalled by a leader that leaves
	keep    chan struct{} // signalled when the links have been hushed; closed by Close
	ended   chan struct{} // closed by Close: who still sleeps then would for ever
}

func (s *pollState) init(links []transport.Link) {
	s.idle = make(chan struct{}, len(links))
	s.keep = make(chan struct{}, 1)
	s.ended = make(chan struct{})
	for _, l := range links {
		if q, ok := transport.As[transport.WakeupMasker](l); ok {
			s.quiet = append(s.quiet, q)
		}
	}
}

// release lets napping servers go, for good if the endpoint is closed by now.
func (s *pollState) release(servers int) {
	for range servers {
		select {
		case s.idle <- struct{}{}:
		default: // as many as could nap are released already
		}
	}
}

// lead takes the poll lock if nobody has it.
func (s *pollState) lead() bool { return !s.lock.Load() && s.lock.CompareAndSwap(false, true) }

// leave gives the poll lock back.
func (s *pollState) leave() {
	s.turns.add(1)
	if len(s.awaiting) > 0 && !s.hushed {
		s.wakeKeeper()
	}
	s.lock.Store(false)
	if n := s.napping.Load(); n > 0 {
		s.release(int(n))
	}
}

// hush makes the servers sleep through arrivals, or no longer. The caller leads.
func (s *pollState) hush(on bool) {
	if s.hushed == on {
		return
	}
	s.hushed = on
	for _, q := range s.quiet {
		q.MaskWakeups(on)
	}
	if on {
		s.wakeKeeper()
	}
}

func (s *pollState) wakeKeeper() {
	select {
	case s.keep <- struct{}{}:
	default: // the keeper knows
	}
}

// poll takes one batch from each link and delivers it. It returns how many frames there were. more says
// that the caller polls again at once. The caller leads.
func (e *Endpoint) poll(more bool) int {
	total, last := 0, len(e.links)-1
	for nic, l := range e.links {
		n, _ := l.Poll(e.frames[:]) // a link that fails says so to its server, too
		e.receive(nic, e.frames[:n], more || nic < last)
		total += n
	}
	if !more {
		e.onIdle()
	}
	return total
}

// expectMore notes whether a port's Receive was told that more follows. The caller leads.
func (s *pollState) expectMore(p *Port, more bool) {
	p.expectsMore = more
	if more {
		s.awaiting = append(s.awaiting, p)
		return
	}
	s.awaiting = slices.DeleteFunc(s.awaiting, func(q *Port) bool { return q == p })
}

// onIdle makes the last call of the ports that were told that more follows. The caller leads.
func (s *pollState) onIdle() {
	for i, p := range s.awaiting {
		s.awaiting[i] = nil
		p.expectsMore = false
		if p.isOpen() {
			p.opts.Receive(nil, false)
		}
	}
	s.awaiting = s.awaiting[:0]
}

// flush tries to send what was posted while a link had no room.
func (e *Endpoint) flush() {
	for nic := range e.queues {
		e.queues[nic].flush()
	}
}

// Progress polls the links once, without waiting, unless another goroutine is polling, and delivers what
// arrived. It reports whether anything did. Programs that wait in Recv or Await need not
// call it.
func (e *Endpoint) Progress() bool {
	if !e.lead() {
		return false
	}
	n := e.poll(true)
	if n == 0 {
		e.onIdle()
	}
	e.leave()
	e.flush()
	return n > 0
}

// Await blocks until c is done, and returns its error, or until ctx ends, and returns ctx's error, or until the endpoint
// is closed, and returns ErrClosed; then c may still be completed later. While it waits, the calling goroutine polls.
// Handlers must not call it.
func (e *Endpoint) Await(ctx context.Context, c *Completion) error {
	if limit := e.pace.spin(); !c.Done() && !e.spin(ctx, c, limit) {
		start := clock.Now()
		c.sleep(ctx, e.ended)
		e.pace.noteSleep(limit, clock.Now().Sub(start))
	}
	if c.Done() {
		return c.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// spinCheck is how many empty polls pass between looks at the clock and the context: about 1 µs on a ring. Where others
// want the core, one will do.
const spinCheck = 64

// spin polls, or watches another goroutine poll, until c is done (true), or it has used up its time or ctx has ended
// (false).
func (e *Endpoint) spin(ctx context.Context, c *Completion, limit time.Duration) bool {
	if limit <= 0 {
		return false
	}
	var spun time.Duration // of our own time
	start, leading := clock.Now(), false
	since, now := start, start
	polite := e.pace.isCrowded()
	for i := 1; !c.Done(); i++ {
		if !leading {
			leading = e.lead()
		}
		if leading && e.poll(true) == 0 {
			e.hush(true)
			e.onIdle()
		}
		if i%spinCheck != 0 && !polite || c.Done() {
			continue
		}
		now = clock.Now()
		spun += now.Sub(since)
		if spun > limit || ctx.Err() != nil {
			break
		}
		e.flush()
		since = e.pace.rest(now, spun)
		polite = e.pace.isCrowded()
	}
	done := c.Done()
	if leading {
		if !done {
			e.hush(false)
			e.onIdle()
		}
		e.leave()
	}
	e.pace.noteShare(spun, now.Sub(start))
	if done {
		e.pace.note(spun) // to a microsecond, and without another look at the clock
	}
	return done
}

// keepTick is how long a program may go without polling before its links are given back to their servers.
const keepTick = 250 * time.Microsecond

// keeper is the goroutine that gives the links back to their servers when a leader has left them hushed and
// nobody polls any more. It ends when Close closes e.keep.
func (e *Endpoint) keeper() {
	defer e.servers.Done()
	tick := time.NewTimer(keepTick)
	defer tick.Stop()
	for range e.keep {
		for seen := e.turns.load(); ; seen = e.turns.load() {
			tick.Reset(keepTick)
			<-tick.C
			if e.closed.Load() {
				break
			}
			if e.turns.load() == seen && e.lead() {
				e.hush(false)
				e.onIdle()
				e.leave()
				break
			}
		}
	}
}

// linkRetry is the pause after a link failed to wait, as it does while its interface is down.
const linkRetry = 10 * time.Millisecond

// serve is the goroutine that answers on link nic while nobody polls. It ends when the link is closed.
func (e *Endpoint) serve(nic int) {
	defer e.servers.Done()
	for {
		switch err := e.links[nic].Wait(context.Background()); {
		case e.closed.Load():
			return
		case errors.Is(err, transport.ErrClosed): // by somebody else: our waiters must not hang
			e.closePorts()
			return
		case err != nil:
			time.Sleep(linkRetry)
			continue
		}
		if !e.leadOrNap() {
			return
		}
		e.attend()
	}
}

// attention is how long a server that was woken by several frames at once looks for more before it sleeps again: about as long as waking
// it takes, and longer than a sender needs to make its next batch.
const attention = 30 * time.Microsecond

// attend delivers what woke a server. One frame is delivered, and that is all: the next may be long in coming.
// But several show that frames come more quickly than servers wake, and then it stays awake as long as they do, unless
// Config.Spin forbids. The caller leads; when attend returns, it does no more.
func (e *Endpoint) attend() {
	stream := false
	var idle monotime.Time // since when nothing has come; zero: something just did
	for {
		n := e.poll(false)
		stream = stream || n > 1 && e.pace.max > 0
		if n > 0 {
			idle = monotime.Time{}
			e.leave()
			e.flush()
			runtime.Gosched() // those whose messages came should run before the next batch
			if !stream || !e.lead() {
				return
			}
			continue
		}
		now := clock.Now()
		if idle.IsZero() {
			idle = now
		}
		if !stream || now.Sub(idle) > attention {
			e.hush(false)
			e.leave()
			e.flush()
			return
		}
		e.hush(true)
	}
}

// leadOrNap takes the poll lock as soon as it is free, or returns false when the endpoint closes.
func (e *Endpoint) leadOrNap() bool {
	e.napping.Add(1)
	defer e.napping.Add(-1)
	for !e.lead() {
		<-e.idle
		if e.closed.Load() {
			return false
		}
	}
	return true
}
