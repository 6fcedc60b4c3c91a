package barrier

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// Ticket is one entered barrier. It may be copied, and several goroutines may wait with it. The
// zero Ticket, as of an Arrive that failed, is of none: its waits fail.
type Ticket struct {
	set        *memberSet
	number     uint8
	generation uint32
}

// entry is the last generation of a number that was entered, and the goroutines that wait for it.
type entry struct {
	generation atomic.Int64 // none while Arrive changes it
	taken      atomic.Bool  // a goroutine waits for done
	done       mcd.Completion
	givenUp    atomic.Bool // a wait ended before the barrier, and no later one has seen its end

	// What follows is guarded by Service.mu.
	entered monotime.Time
	report  report
	asked   monotime.Time     // for the report, who has entered
	query   *engine.Query     // of the report, or nil
	waiting int               // goroutines of which a unit was told, and that have not given up
	others  []*mcd.Completion // of goroutines that wait while another one has taken done
}

const none = -1 // no generation

// renew returns a number's entry, ready for the next generation. A goroutine that has not noticed
// the end of the last one yet keeps its own: then the entry is a new one. The caller holds
// Service.mu.
func (c *memberSet) renew(number uint8, now monotime.Time) *entry {
	e := c.entries[number].Load()
	if e != nil {
		e.generation.Store(none) // Wait looks after it has taken the entry: one of the two sees the other
		c.endReport(e)
	}
	if e == nil || e.taken.Load() {
		e = new(entry)
		e.generation.Store(none)
		c.entries[number].Store(e)
	}
	e.done.Reset()
	e.entered, e.report, e.waiting = now, inTime, 0
	return e
}

// complete ends all waits. The caller holds Service.mu.
func (e *entry) complete(err error) {
	e.done.Complete(err)
	for _, c := range e.others {
		c.Complete(err)
	}
	e.others = nil
}

// Generation returns the count of its number's barriers, from 1.
func (t Ticket) Generation() uint32 { return t.generation }

// Done reports, without waiting, whether the barrier has ended, and how: nil if all members have
// entered. It makes progress.
func (t Ticket) Done() (bool, error) {
	if t.set == nil {
		return true, errNoBarrier
	}
	e := t.set.entries[t.number].Load()
	t.set.service.ep.Progress()
	if t.set.offloaded != nil {
		t.collect()
	}
	return t.ended(e)
}

// collect has the engine know what a unit has counted.
func (t Ticket) collect() {
	t.set.service.mu.Lock()
	defer t.set.service.mu.Unlock()
	o := t.set.offloaded
	o.collect(clock.Now(), o.numbers[t.number])
}

// announceWait has a unit, if it counts, wake this node at the barrier's end.
func (t Ticket) announceWait(e *entry) {
	if t.set.offloaded == nil {
		return
	}
	t.set.service.mu.Lock()
	defer t.set.service.mu.Unlock()
	if e.generation.Load() == int64(t.generation) {
		e.waiting++
		t.set.offloaded.await(t.number, t.generation)
	}
}

// withdrawWait undoes announceWait behind the last goroutine that waits. The caller holds
// Service.mu.
func (t Ticket) withdrawWait(e *entry) {
	if t.set.offloaded == nil {
		return
	}
	if e.waiting--; e.waiting == 0 {
		t.set.offloaded.unawait(t.number, t.generation)
	}
}

// Wait returns when all members have entered the barrier: the second phase of a fuzzy barrier.
// While it waits, the calling goroutine polls. Errors as for Group.Barrier.
func (t Ticket) Wait(ctx context.Context) error {
	if t.set == nil {
		return errNoBarrier
	}
	e := t.set.entries[t.number].Load()
	if !e.taken.CompareAndSwap(false, true) {
		return t.waitBeside(ctx, e)
	}
	defer e.taken.Store(false)
	if e.generation.Load() != int64(t.generation) {
		return nil // the barrier ended, and another one was entered since
	}
	t.announceWait(e)
	err := t.await(ctx, e, &e.done)
	if e.done.Done() && !e.givenUp.Load() {
		return e.done.Err()
	}
	return t.giveUp(e, err)
}

// await waits for a completion of the entry. Where it does not return, as another port's function
// panics in it, or ends the goroutine, the wait is given up.
func (t Ticket) await(ctx context.Context, e *entry, c *mcd.Completion) error {
	returned := false
	defer func() {
		if !returned {
			_ = t.giveUp(e, nil) // who would be told does not go on here
		}
	}()
	err := t.set.service.ep.Await(ctx, c)
	returned = true
	return err
}

// waitBeside is Wait while another goroutine waits for the same entry.
func (t Ticket) waitBeside(ctx context.Context, e *entry) error {
	s, own := t.set.service, new(mcd.Completion)
	s.mu.Lock()
	if ended, err := t.endedLocked(e); ended {
		s.mu.Unlock()
		return err
	}
	e.others = append(e.others, own)
	s.mu.Unlock()
	t.announceWait(e)
	err := t.await(ctx, e, own)
	s.mu.Lock()
	e.others = slices.DeleteFunc(e.others, func(c *mcd.Completion) bool { return c == own })
	s.mu.Unlock()
	return t.giveUp(e, err)
}

// ended reports whether the barrier has ended, and how. It takes the lock only if it has.
func (t Ticket) ended(e *entry) (bool, error) {
	if e.generation.Load() == int64(t.generation) && !e.done.Done() {
		return false, nil
	}
	t.set.service.mu.Lock()
	defer t.set.service.mu.Unlock()
	return t.endedLocked(e)
}

func (t Ticket) endedLocked(e *entry) (bool, error) {
	switch {
	case e.generation.Load() != int64(t.generation):
		return true, nil // another one was entered since
	case !e.done.Done():
		return false, nil
	}
	e.givenUp.Store(false)
	return true, e.done.Err()
}

// giveUp returns how the barrier ended; if it has not, the next Arrive resumes it.
func (t Ticket) giveUp(e *entry, err error) error {
	s := t.set.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := t.set.offloaded; o != nil {
		o.collect(clock.Now(), o.numbers[t.number])
	}
	if ended, err := t.endedLocked(e); ended {
		return err
	}
	t.withdrawWait(e)
	if ended, err := t.endedLocked(e); ended { // the last one came meanwhile
		return err
	}
	e.givenUp.Store(true)
	missing := t.set.nodesOf(t.set.engine.Missing(t.number, nil))
	return &IncompleteError{t.number, t.generation, missing, t, err}
}
