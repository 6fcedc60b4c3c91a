package mpi

import (
	"context"
	"errors"
	"slices"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// windowHandlerID is that of the records of windows, on every node, behind that of messages.
const windowHandlerID = activemsg.HandlerID + 1

// Updates, locks and exposures are records to a handler at the other process, which answers where
// it polls. Puts and Gets are memfifo's, and in one order with the records.

// call is a record that is answered.
type call struct {
	m          *member
	id         uint32
	size       int    // of the answer's data
	updates    uint64 // of its member, which the answer confirms
	data       []byte // the answer's
	record     []byte // memory of the record
	completion mcd.Completion
}

// newCall returns a call, whose id no other one has. The caller holds World.mu.
func (v *window) newCall(m *member, size int) *call {
	var c *call
	if n := len(v.spare); n > 0 {
		c, v.spare = v.spare[n-1], v.spare[:n-1]
		c.completion.Reset()
	} else {
		c = new(call)
	}
	for v.lastID++; v.lastID == 0 || v.calls[v.lastID] != nil; v.lastID++ {
	}
	c.m, c.id, c.size = m, v.lastID, size
	v.calls[c.id] = c
	return c
}

// endCall waits for the answer to a call, puts its data into some memory, and ends the call.
func (v *window) endCall(ctx context.Context, c *call, into []byte) error {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	defer v.forget(c)
	err := v.w.awaitOutside(ctx, &c.completion)
	if c.completion.Done() {
		err = c.completion.Err()
	}
	if err == nil {
		copy(into, c.data)
	}
	return err
}

// forget ends a call: nobody completes it any more. The caller holds World.mu.
func (v *window) forget(c *call) {
	delete(v.calls, c.id)
	if len(v.spare) < maxSpare {
		v.spare = append(v.spare, c)
	}
}

// ask sends a record, and waits for the answer.
func (v *window) ask(ctx context.Context, m *member, r *wire.WindowRecord, into []byte) error {
	v.expect(m)
	w := v.w
	w.mu.Lock()
	if err := v.usable(m); err != nil {
		w.mu.Unlock()
		return err
	}
	c := v.newCall(m, len(into))
	w.mu.Unlock()
	r.Context, r.ID = v.comm.context, c.id
	c.record = wire.AppendWindow(c.record[:0], r)
	pushed := false
	defer func() {
		if !pushed { // or the wait for room has not returned
			w.mu.Lock()
			v.forget(c)
			w.mu.Unlock()
		}
	}()
	if err := m.to.Push(ctx, c.record); err != nil {
		return v.outcome(m, err)
	}
	pushed = true
	return v.endCall(ctx, c, into)
}

// accumulate updates elements at a member, and puts what they were into old, if that is not nil. A
// record has as many as fit a frame.
func (v *window) accumulate(ctx context.Context, m *member, at int, data, old []byte, u Update) error {
	if old == nil && len(data) > 0 {
		defer v.updated(m) // a flush that is under way may be before them
	}
	most := (v.w.frame - wire.WindowUpdateLen) / v.element * v.element
	r := wire.WindowRecord{Kind: wire.Accumulate, Context: v.comm.context, Update: uint8(u), At: uint64(at)}
	for len(data) > 0 {
		n := min(most, len(data))
		r.Data = data[:n]
		var err error
		if old != nil {
			r.Kind = wire.Fetch
			err = v.ask(ctx, m, &r, old[:n])
			old = old[n:]
		} else {
			err = v.outcome(m, m.to.Push(ctx, wire.AppendWindow(nil, &r)))
		}
		if err != nil {
			return err
		}
		data = data[n:]
		r.At += uint64(n / v.element)
	}
	return nil
}

// updated notes that a member was sent updates.
func (v *window) updated(m *member) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	m.updates++
}

// expect has a member probed from now on, so that its death is noticed.
func (v *window) expect(m *member) {
	v.w.mu.Lock()
	expected := m.expected
	m.expected = true
	v.w.mu.Unlock()
	if !expected {
		v.w.probe(v.w.windowHandler, m.p)
	}
}

// receiveWindow takes a record: a memfifo.Handler's function, in the goroutine that polls.
func (w *World) receiveWindow(from memfifo.Sender, rec []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	rank, known := w.ranks[from.Node()]
	if known && w.all[rank].err != nil {
		w.stats.Stale++
		w.postGone(w.all[rank], from)
		return
	}
	var r wire.WindowRecord
	err := wire.ParseWindow(&r, rec)
	if errors.Is(err, wire.ErrVersion) {
		w.stats.Version++
		return
	}
	ok := err == nil && known
	switch v := w.windows[r.Context]; {
	case !ok:
	case v == nil: // it is freed here
		if r.Kind <= wire.CompareSwap || r.Kind == wire.Lock {
			freed := wire.WindowRecord{Kind: wire.Freed, Context: r.Context}
			_ = from.Post(windowHandlerID, 0, wire.AppendWindow(nil, &freed)) // it waits for an answer
		}
	default:
		at := v.comm.rankOf(rank)
		if at >= 0 && len(v.members[at].queue) > maxUntaken {
			w.giveUp(w.all[rank], errUntaken)
			return
		}
		ok = at >= 0 && v.handle(v.members[at], &r, from)
	}
	if !ok {
		w.stats.Malformed++
	}
}

// handle does what a record of a member says. It reports false for one that makes no sense. from
// may be the zero Sender. The caller holds World.mu.
func (v *window) handle(m *member, r *wire.WindowRecord, from memfifo.Sender) bool {
	switch r.Kind {
	case wire.Accumulate:
		return v.update(Update(r.Update), r.At, r.Data) != nil
	case wire.Fetch:
		return v.answer(m, r, v.update(Update(r.Update), r.At, r.Data), from)
	case wire.CompareSwap:
		return v.answer(m, r, v.compareSwap(r.At, r.Data), from)
	case wire.Value, wire.Granted:
		c := v.calls[r.ID]
		if c == nil { // its caller has gone
			return true
		}
		if c.m != m || c.size != len(r.Data) {
			return false
		}
		c.data = append(c.data[:0], r.Data...)
		c.complete(nil)
	case wire.Lock:
		if !v.locks.add(m.rank, r.ID, r.Exclusive) {
			return false
		}
		from.Expect()
		v.grant(from)
	case wire.Release:
		v.locks.remove(m.rank, r.ID)
		v.grant(from)
	case wire.Post:
		m.posts++
		v.wake()
	case wire.Complete:
		m.completes++
		v.wake()
	case wire.Freed:
		m.freed = true
		v.abandon(m, ErrFreed)
	}
	return true
}

// answer answers a record with elements, if they are there. The caller holds World.mu.
func (v *window) answer(m *member, r *wire.WindowRecord, old []byte, from memfifo.Sender) bool {
	if old == nil || len(old) > memfifo.MaxRecord-wire.WindowHeadLen {
		return false
	}
	v.post(m, &wire.WindowRecord{Kind: wire.Value, ID: r.ID, Data: old}, from)
	return true
}

// grant tells those that hold the lock now. The caller holds World.mu.
func (v *window) grant(from memfifo.Sender) {
	v.locks.grant(func(rank int, id uint32) {
		v.post(v.members[rank], &wire.WindowRecord{Kind: wire.Granted, ID: id}, from)
	})
}

func (c *call) complete(err error) {
	if !c.completion.Done() {
		c.completion.Complete(err)
	}
}

// post sends a record where the caller may not wait: at once if it is for the sender of the record
// that is being handled, and there is room; else a goroutine does. The caller holds World.mu.
func (v *window) post(m *member, r *wire.WindowRecord, from memfifo.Sender) {
	w := v.w
	switch {
	case m.p == w.me:
		v.handle(m, r, memfifo.Sender{})
		return
	case m.p.err != nil || w.closed:
		return
	}
	r.Context = v.comm.context
	v.answered = wire.AppendWindow(v.answered[:0], r)
	if from != (memfifo.Sender{}) && from.Node() == m.p.ID && len(m.queue) == 0 {
		if from.Post(windowHandlerID, 0, v.answered) == nil {
			return
		}
	}
	m.queue = append(m.queue, slices.Clone(v.answered))
	v.begin(m)
}

// begin has a goroutine send what is queued, unless one does. The caller holds World.mu.
func (v *window) begin(m *member) {
	if !m.busy && len(m.queue) > 0 {
		m.busy = true
		v.w.running.Go(func() { v.send(m, true) }) // until the queue is empty, or the world ends
	}
}

// tell sends a record, in this goroutine if that need not wait. The caller holds World.mu, which
// tell gives back.
func (v *window) tell(m *member, r *wire.WindowRecord) {
	w := v.w
	r.Context = v.comm.context
	switch {
	case m.p == w.me:
		v.handle(m, r, memfifo.Sender{})
	case m.p.err == nil && !w.closed:
		m.queue = append(m.queue, wire.AppendWindow(nil, r))
		if !m.busy {
			m.busy = true
			w.mu.Unlock()
			v.send(m, false)
			return
		}
	}
	w.mu.Unlock()
}

// send sends what is queued for a member that this goroutine has made busy. If it may not wait,
// another one goes on.
func (v *window) send(m *member, wait bool) {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	defer v.wake()
	for len(m.queue) > 0 {
		err := v.sendOutside(m, m.queue[0], wait)
		switch {
		case err == nil && len(m.queue) > 0:
			m.queue = m.queue[1:]
		case errors.Is(err, memfifo.ErrBusy):
			m.busy = false
			v.begin(m)
			return
		case err != nil:
			if !w.closed {
				w.fail(m.p.ID, err)
			}
			m.queue = nil
		}
	}
	m.queue, m.busy = nil, false
	w.idle.Broadcast()
}

// sendOutside sends a record, and is for windows as World.carryOutside for messages.
func (v *window) sendOutside(m *member, rec []byte, wait bool) error {
	w := v.w
	w.mu.Unlock()
	returned := false
	defer func() {
		if w.mu.Lock(); !returned {
			m.queue, m.busy = nil, false
			w.giveUp(m.p, errUnreturned)
			w.idle.Broadcast()
		}
	}()
	err := memfifo.ErrBusy
	if len(rec) <= w.frame { // an answer to a process whose frames are longer may be more
		err = m.to.PostPush(rec)
	}
	if wait && errors.Is(err, memfifo.ErrBusy) {
		err = m.to.Push(w.ended, rec)
	}
	returned = true
	return err
}

// sent reports whether nothing waits to be sent. The caller holds World.mu.
func (v *window) sent() (bool, error) {
	return !slices.ContainsFunc(v.members, func(m *member) bool { return m.busy && m.p.err == nil }), nil
}

// await waits until ready says that it is over. The caller holds World.mu, and ready is called with
// it.
func (v *window) await(ctx context.Context, ready func() (bool, error)) error {
	q := new(mcd.Completion)
	v.waiters = append(v.waiters, q)
	defer func() {
		v.waiters = slices.DeleteFunc(v.waiters, func(other *mcd.Completion) bool { return other == q })
	}()
	for {
		q.Reset()
		if done, err := ready(); done || err != nil {
			return err
		}
		err := v.w.awaitOutside(ctx, q)
		switch {
		case v.w.closed:
			return ErrClosed
		case err != nil && !q.Done():
			return err
		}
	}
}

// wake has those that wait look again. The caller holds World.mu.
func (v *window) wake() {
	for _, q := range v.waiters {
		if !q.Done() {
			q.Complete(nil)
		}
	}
}

// end ends all waits. The caller holds World.mu.
func (v *window) end(err error) {
	for _, c := range v.calls {
		c.complete(err)
	}
	v.wake()
}

// fail ends what is under way with a process that is down. The caller holds World.mu.
func (v *window) fail(p *process) {
	at := v.comm.rankOf(p.rank)
	if at < 0 {
		return
	}
	v.members[at].queue = nil
	v.abandon(v.members[at], p.err)
}

// abandon ends what waits for a member, and gives its locks to others. The caller holds World.mu.
func (v *window) abandon(m *member, err error) {
	for _, c := range v.calls {
		if c.m == m {
			c.complete(err)
		}
	}
	v.locks.remove(m.rank, 0)
	v.grant(memfifo.Sender{})
	v.wake()
}
