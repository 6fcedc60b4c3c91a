package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A short Bcast is one multicast frame. Who waits for one that was lost asks the root for it, which
// has kept it, and answers by a record: at once if a later one has come, else after a time. A
// root's first goes to each process by a record, which says whose multicasts are to be taken from
// then on: none of an earlier life of the root's.
//
// A root keeps the last multicastWindow. After the first, and then each multicastAck of them, the
// others tell it that they have all so far; it waits for that before the second, and then before it
// would forget one that somebody lacks. Among few, each multicast tells the others that, too: where
// all have roots' turns, as in an Allreduce by each, it takes no message of its own. What was told
// so may be lost, and given up: a root that waits asks, too, what the others have.
//
// Source: Hoefler, Siebert, Rehm, "A practically constant-time MPI Broadcast Algorithm for
// large-scale InfiniBand Clusters with Multicast", IPDPS 2007, whose second stage sends all data
// on; here it asks for what is lost, as MCD §2.3 has it for barriers.
const (
	multicastWindow = 2 * multicastAck
	multicastAck    = 16
	maxMulticast    = 1 << 10 // bytes, which fit a frame of any link
	maxTold         = 8       // processes, of a communicator in which multicasts tell what has come
	// deafFrom is how many of multicastAck have to come to a process by records, so that the
	// others do, too: its network does not carry the communicator's multicasts to it. After
	// deafPause times multicastAck, then twice as many, and so on, frames are tried again.
	deafFrom  = 6
	deafPause = 8
	// askAfter is when a multicast that does not come is asked for; then again after twice that
	// time, and so on up to maxAskAfter.
	askAfter    = 2 * time.Millisecond
	maxAskAfter = 64 * time.Millisecond
)

// multicasts is what a process keeps of those in a communicator. World.mu guards it.
type multicasts struct {
	group   mcd.GroupID
	joining bool // the group, or it has, or could not
	joined  bool
	sources []*source // by rank
	root    root      // of this process' own
	told    []byte    // memory for what a multicast tells
}

// multicastWait is what a request waits for: a multicast from a source, or that one of multicasts
// may go.
type multicastWait struct {
	from       *source
	operation  wire.Operation // whose it is to be
	multicasts *multicasts
	number     uint32
}

// multicast is a Bcast by multicasts of what there is at the root once all have done first, which
// may be nil. It has its number before that: if first fails here, it does not everywhere.
func (o collective) multicast(buf []byte, root int, first func() error) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if first == nil {
		first = func() error { return nil }
	}
	if o.Size() == 1 {
		return first()
	}
	m := o.joinMulticasts()
	var number uint32
	var err error
	if root == o.rank {
		number = m.root.begin()
	} else {
		number, err = m.source(root, o.members[root]).begin()
	}
	o.w.mu.Unlock()
	if err != nil {
		return err
	}
	end := func(buf []byte, err error) error {
		if root != o.rank {
			return o.listen(m, root, number, buf, err)
		}
		o.w.mu.Lock()
		return o.lead(m, number, buf, err)
	}
	returned := false
	defer func() {
		if !returned { // the others wait
			_ = end(nil, errUnreturned)
		}
	}()
	err = first()
	returned = true
	return end(buf, err)
}

// share multicasts what each process has to all, which put that of rank k into the k-th part of
// all. These have their numbers before: if it has failed here, as err says, it does not everywhere.
func (o collective) share(data, all []byte, err error) error {
	if o.Size() == 1 {
		return err
	}
	type part struct {
		number uint32
		comes  bool
	}
	var few [maxTold]part
	parts := few[:min(o.Size(), len(few))]
	if o.Size() > len(few) {
		parts = make([]part, o.Size())
	}
	m := o.joinMulticasts()
	for k := range parts {
		var order error
		if k == o.rank {
			parts[k].number = m.root.begin()
		} else if parts[k].number, order = m.source(k, o.members[k]).begin(); order != nil {
			err = order
		} else {
			parts[k].comes = true
		}
	}
	heard := 0 // of the parts
	defer func() {
		for k := heard; k < len(parts); k++ { // a wait has not returned
			if parts[k].comes {
				_ = o.listen(m, k, parts[k].number, nil, errUnreturned)
			}
		}
	}()
	failed := o.lead(m, parts[o.rank].number, data, err)
	for k, p := range parts {
		heard++
		switch {
		case !p.comes:
		case err != nil:
			_ = o.listen(m, k, p.number, nil, err) // the same
		default:
			failed = errors.Join(failed, o.listen(m, k, p.number, all[k*len(data):][:len(data)], nil))
		}
	}
	return failed
}

// listen waits for a multicast of a root, unless err says that its Bcast has failed already. At
// times it says which have come.
func (o collective) listen(m *multicasts, root int, number uint32, buf []byte, err error) error {
	w := o.w
	w.mu.Lock()
	s := m.sources[root]
	r := w.spare.request()
	o.begin(r, buf)
	defer func() {
		if s.end(number) && w.all[s.rank].err == nil && !w.closed {
			o.sendMulticast(root, &wire.Multicast{Kind: wire.Have, Number: s.ended, Missed: s.missed})
			s.told, s.missed = s.ended, 0
		}
		w.spare.keepRequest(r)
		w.run()
	}()
	if err == nil && !s.slot(number).came {
		w.pollOutside() // what has come by now needs no wait
	}
	switch v := s.slot(number); {
	case err != nil:
	case v.came:
		r.fill(v.data)
		err = r.fits(root, v.operation, o.operation())
	default:
		if err = o.state(); err == nil {
			err = w.all[s.rank].err
		}
	}
	if err == nil && !s.slot(number).came {
		err = s.left
	}
	if err == nil && !s.slot(number).came {
		err = o.await(r, s, number)
	}
	return err
}

// await waits for a multicast, and asks for it. The caller holds World.mu, which await gives back
// meanwhile.
func (o collective) await(r *Request, s *source, number uint32) error {
	w := o.w
	r.multicast = multicastWait{from: s, number: number, operation: o.operation()}
	s.slot(number).request = r
	w.activate(r)
	o.beginAsking(s, number)
	w.askBehind(s)
	defer o.endAsking(s, number)
	return o.sleep(r, w.expected(s.rank))
}

// sleep waits for an active request, which ends with the wait, also if that does not return. Who is
// expected is probed. The caller holds World.mu, which sleep gives back meanwhile, and what is
// queued is carried out.
func (o collective) sleep(r *Request, expect []*process) (err error) {
	w := o.w
	err = errUnreturned
	defer func() {
		w.mu.Lock()
		w.complete(r, err) // if the wait has ended without
		err = r.completion.Err()
	}()
	w.runExpecting(expect)
	return w.await(o.ctx, &r.completion)
}

// state says why nothing is sent or received in the communicator any more, if that is so. The
// caller holds World.mu.
func (c *Comm) state() error {
	if c.w.closed {
		return ErrClosed
	}
	return c.over()
}

// openMulticasts opens the port of multicasts, if they may be needed.
func (w *World) openMulticasts() (err error) {
	if !slices.ContainsFunc(w.cfg.Algorithms, func(a Algorithm) bool { return a.multicasts() }) {
		return nil
	}
	w.asking = time.AfterFunc(askAfter, w.ask)
	w.multicasts, err = w.ep.OpenPort(w.cfg.Port+2, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for k := range batch {
			m := &batch[k]
			err := wire.ErrMalformed
			if rank, known := w.ranks[m.From.Node]; known {
				err = w.takeMulticast(rank, m.Payload, false)
			}
			w.countBad(err)
		}
		w.beginTouched()
	}})
	return err
}

// closeMulticasts closes the port.
func (w *World) closeMulticasts() error {
	if w.multicasts == nil {
		return nil
	}
	w.asking.Stop()
	err := w.multicasts.Close()
	w.mu.Lock()
	comms := slices.Collect(maps.Values(w.comms))
	w.mu.Unlock()
	for _, c := range comms {
		c.leaveGroup()
	}
	return err
}

// multicastState returns the communicator's, made at the first call. The caller holds World.mu.
func (c *Comm) multicastState() *multicasts {
	if c.multicasts == nil {
		n := len(c.members)
		c.multicasts = &multicasts{
			group:   mcd.GroupID(c.context ^ c.context>>16 ^ uint32(c.w.cfg.Port)<<8),
			sources: make([]*source, n),
			root:    root{incarnation: incarnation.New(), listeners: make([]listener, n)},
		}
	}
	return c.multicasts
}

func (m *multicasts) source(rank int, world matching.Rank) *source {
	if m.sources[rank] == nil {
		m.sources[rank] = &source{rank: world}
	}
	return m.sources[rank]
}

// joinMulticasts has the process hear the communicator's multicasts. Where it cannot it asks for
// each, until the root takes it for deaf. It returns with World.mu held.
func (c *Comm) joinMulticasts() *multicasts {
	w := c.w
	w.mu.Lock()
	m := c.multicastState()
	if m.joining || w.closed || c.left {
		return m
	}
	m.joining = true
	w.mu.Unlock()
	err := w.ep.Join(m.group)
	w.mu.Lock()
	m.joined = err == nil
	if m.joined && (w.closed || c.left) {
		w.mu.Unlock()
		c.leaveGroup()
		w.mu.Lock()
	}
	return m
}

// leaveGroup undoes joinMulticasts.
func (c *Comm) leaveGroup() {
	w := c.w
	w.mu.Lock()
	m := c.multicasts
	leave := m != nil && m.joined
	if leave {
		m.joined = false
	}
	w.mu.Unlock()
	if leave {
		_ = w.ep.Leave(m.group) // it has joined; a closed endpoint has left by itself
	}
}

// leaveMulticasts tells the others that this process has freed the communicator alone; else they
// hear it when they send something. The caller holds World.mu, and has what is queued carried out.
func (c *Comm) leaveMulticasts() {
	if c.multicasts == nil {
		return
	}
	c.flushMulticasts()
	for k, rank := range c.members {
		if k != c.rank {
			c.w.sayLeft(rank, c.context)
		}
	}
}

// sendMulticast queues a record about multicasts. The caller holds World.mu.
func (c *Comm) sendMulticast(rank int, d *wire.Multicast) {
	d.Context = c.context
	c.w.queue(c.members[rank], item{raw: wire.AppendMulticast(nil, d)})
}

// answerMulticast is sendMulticast of what is asked for again. The caller holds World.mu.
func (c *Comm) answerMulticast(rank int, d *wire.Multicast) {
	d.Context = c.context
	c.w.queueAgain(c.members[rank], item{raw: wire.AppendMulticast(nil, d)})
}

// takeMulticast takes in a frame of multicasts or, if it is reliable, a record. The caller holds
// mu, and has what is queued carried out.
func (w *World) takeMulticast(from matching.Rank, rec []byte, reliable bool) error {
	e := earlyRecord{from: from}
	d := &e.multicast
	if err := wire.ParseMulticast(d, rec); err != nil || w.closed || w.all[from].err != nil {
		return err
	}
	c := w.comms[d.Context]
	early := c == nil && w.making > 0 && !w.engine.Revoked(d.Context)
	asks := d.Kind == wire.Ask || d.Kind == wire.Waiting
	switch {
	case !reliable && d.Kind != wire.Data:
		return wire.ErrMalformed
	case c != nil && !c.left:
		return c.takeMulticast(from, d, reliable)
	case !reliable || early && asks: // which is asked again
		return nil
	case early:
		d.Told, d.Data = bytes.Clone(d.Told), bytes.Clone(d.Data)
		return w.keepEarly(e)
	case d.Kind == wire.Data || asks:
		w.sayLeft(from, d.Context)
	}
	return nil
}

// sayLeft tells a process that this one takes, and answers, nothing in a communicator. The caller
// holds mu, and has what is queued carried out.
func (w *World) sayLeft(to matching.Rank, context uint32) {
	left := wire.Multicast{Kind: wire.Left, Context: context}
	w.queueAgain(to, item{raw: wire.AppendMulticast(nil, &left)})
}

// takeMulticast takes in what a process says. The caller holds World.mu.
func (c *Comm) takeMulticast(from matching.Rank, d *wire.Multicast, reliable bool) error {
	k := c.rankOf(from)
	switch {
	case k < 0 && !reliable: // it is of another color of the same Split, which has the same group
		return nil
	case k < 0 || k == c.rank:
		return wire.ErrMalformed
	}
	w, m := c.w, c.multicastState()
	switch d.Kind {
	case wire.Ask:
		c.hearTold(k, d.Ended)
		m.answer(c, k, d.Number)
	case wire.Have:
		m.hear(k, d)
		c.goOn()
	case wire.Left:
		m.root.listeners[k].left = true
		c.goOn()
		m.source(k, from).leave(c)
	case wire.Waiting:
		if s := m.source(k, from); int32(s.ended-d.Number) >= 0 {
			c.answerMulticast(k, &wire.Multicast{Kind: wire.Have, Number: s.ended})
		} // else it hears so later, or asks again
	case wire.Withdrawn:
		if s := m.source(k, from); s.expects(d.Number) {
			if r := s.slot(d.Number).request; r != nil {
				w.complete(r, fmt.Errorf("rank %d: %w", k, ErrWithdrawn))
			}
		}
	case wire.Data:
		s := m.source(k, from)
		if reliable {
			s.incarnation = d.Incarnation
		}
		if s.incarnation != d.Incarnation {
			return nil
		}
		if number, ok := d.ToldTo(c.rank, c.Size()); ok {
			c.hearTold(k, number)
		}
		if r := s.take(d, reliable); r != nil {
			w.complete(r, r.fits(k, d.Operation, r.multicast.operation))
		}
		w.askBehind(s)
	}
	return nil
}
