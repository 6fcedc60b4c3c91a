package mcd

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// sleeper has a goroutine that waits sleep in the link itself, where an endpoint has one link: the
// frame wakes it, and it polls. Else the frame wakes the link's own goroutine, which polls and
// wakes the one that waits; and where the process has idle processors the runtime starts a thread
// for a goroutine that another one wakes, on a core that some other process may have use for.
//
// One goroutine does so at a time. Others that sleep are woken by the one that polls: it, or, once
// it has left, the link's own goroutine. Where frames come while nobody waits, as acknowledgements
// to one who sends a stream do, the link's own goroutine is to take those meanwhile: so they all
// sleep elsewhere, until that was not so for some time.
type sleeper struct {
	link  transport.Sleeper // nil: the link has no Sleep, or there are several
	taken atomic.Bool       // a goroutine sleeps there
	seen  atomic.Uint64     // turns of the poll lock begun when a sleep has ended last
	calm  atomic.Int32      // sleeps in a row since before which nobody had polled

	// What interrupts it at its context's end is kept for the next one, where two in a row have had
	// the same context. These are changed by the one that has taken it.
	last <-chan struct{} // the last one's context's Done
	done <-chan struct{}
	stop func() bool
}

func (s *sleeper) init(links []transport.Link) {
	if len(links) == 1 { // a link that wraps it may have more to wait for
		s.link, _ = links[0].(transport.Sleeper)
	}
}

const (
	// calmSleeps is how many sleeps in a row have to begin with no frame since the last one, until
	// they are in the link. A sender of a stream has one in two.
	calmSleeps = 8
	// othersFrames is how often one who sleeps in the link is woken by what is not its message,
	// until it leaves it: to one who is, most likely.
	othersFrames = 8
)

// note takes a sleep into account that begins when the poll lock was taken so often. It is not how
// often it was given back that counts: who woke the last sleep may still have had it at its end.
func (s *sleeper) note(turns uint64) {
	if turns-s.seen.Load() > 1 { // one is the caller's, who has unmasked the wake-ups
		s.calm.Store(0)
	} else if n := s.calm.Load(); n < calmSleeps {
		s.calm.Store(n + 1)
	}
}

// take reports whether the caller may sleep in the link.
func (s *sleeper) take() bool {
	return s.link != nil && s.calm.Load() >= calmSleeps && s.taken.CompareAndSwap(false, true)
}

// isLasting reports whether a context may be asked for its end after the wait that it was for:
// those of the standard library may. Others may be used anew, and end then without an error; so may
// what context.WithValue makes of them, whose end is theirs.
func isLasting(ctx context.Context) bool {
	v := reflect.Indirect(reflect.ValueOf(ctx))
	switch v.Type().PkgPath() {
	case "context":
		if v.Type().Name() != "valueCtx" {
			return true
		}
		inner := v.FieldByName("Context")
		if !inner.IsValid() {
			return false
		}
		of, ok := inner.Interface().(context.Context)
		return ok && isLasting(of)
	case "os/signal":
		return true
	}
	return false
}

// endWith has the link's Sleep end as ctx does.
func (s *sleeper) endWith(ctx context.Context) {
	done := ctx.Done()
	if done == s.done {
		return
	}
	if s.stop != nil {
		s.stop()
	}
	s.done, s.stop = done, nil
	if done != nil {
		s.stop = context.AfterFunc(ctx, s.link.Interrupt)
	}
}

// interrupt ends the Sleep of the goroutine that sleeps in the link, if there is one.
func (s *sleeper) interrupt() {
	if s.taken.Load() {
		s.link.Interrupt()
	}
}

// keep keeps what interrupts at ctx's end, if the last one that slept had that context, too: one
// that is made for a single wait is ended behind it, and would have a goroutine interrupt the next.
func (s *sleeper) keep(ctx context.Context) {
	if done := ctx.Done(); done != s.last {
		s.last = done
		s.endWith(context.Background())
	}
}

// forget drops the context of the last one that slept, once the endpoint is closed: no other comes.
func (s *sleeper) forget() {
	if s.taken.CompareAndSwap(false, true) {
		s.keep(context.Background())
		s.taken.Store(false)
	}
}

// sleep sleeps until c is done, ctx ends or the endpoint is closed.
func (e *Endpoint) sleep(ctx context.Context, c *Completion) {
	s := &e.sleeper
	s.note(e.turnsBegun())
	defer func() { s.seen.Store(e.turnsBegun()) }()
	if isLasting(ctx) && s.take() {
		e.sleepInLink(ctx, c)
	}
	if !c.Done() {
		c.sleep(ctx, e.ended)
	}
}

// sleepInLink is sleep that polls what comes. It returns early if the link fails, or what comes is
// for others.
func (e *Endpoint) sleepInLink(ctx context.Context, c *Completion) {
	s := &e.sleeper
	defer func() { // also if a Receive function panics
		s.link.Awake()
		s.keep(ctx)
		s.taken.Store(false)
		if e.over.Load() != nil {
			s.forget()
		}
	}()
	s.endWith(ctx)
	heard := 0 // batches, and times that another goroutine had them
	enough := func() bool {
		heard++
		return heard >= othersFrames || !e.awaits(ctx, c)
	}
	for heard < othersFrames && e.awaits(ctx, c) {
		if s.await(c) != nil {
			return
		}
		if c.Done() || !e.tryLockPoll() || !e.busyPoll(enough) {
			heard++
		}
	}
}

// awaits reports whether there is something to wait for.
func (e *Endpoint) awaits(ctx context.Context, c *Completion) bool {
	return !c.Done() && ctx.Err() == nil && e.over.Load() == nil
}

// await is the link's Sleep, which ends when c is done, too.
func (s *sleeper) await(c *Completion) error {
	c.inLink.Store(s)
	defer c.inLink.Store(nil)
	if c.Done() {
		return nil
	}
	return s.link.Sleep()
}
