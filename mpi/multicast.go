package mpi

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A short Bcast is one multicast frame. Who waits for one that was lost asks the root for it, which
// has kept it, and answers by a record: at once if a later one has come, else after a time. A root's
// first goes to each process by a record, which says whose multicasts are to be taken from then on:
// none of an earlier life of the root's.
//
// A root keeps the last multicastWindow. After the first, and then each multicastAck of them, the
// others tell it, by a message, that they have all so far; it waits for that before the second, and
// then before it would have to forget one.
//
// Source: Hoefler, Siebert, Rehm, "A practically constant-time MPI Broadcast Algorithm for
// large-scale InfiniBand Clusters with Multicast", IPDPS 2007, whose second stage sends all data
// on; here it asks for what is lost, as SCMD's barrier does (§3.2).
const (
	multicastWindow = 2 * multicastAck
	multicastAck    = 16
	maxMulticast    = 1 << 10 // bytes, which fit a frame of any link
	// deafFrom is how many of multicastAck a process has to ask for before it gets the others by
	// records: its network does not carry the communicator's multicasts to it.
	deafFrom = 6
	// askTick is how often a process looks for multicasts that have not come. It asks for one after
	// 2 looks, 4 more, 8 more, and so on, and at last after each maxPatience.
	askTick     = time.Millisecond
	maxPatience = 64
)

// multicasts is what a process keeps of those in a communicator. World.mu guards it, where nothing
// else is said.
type multicasts struct {
	group   mcd.GroupID
	joining bool // or it has, or has failed to
	joined  bool
	sources []*source // by rank

	// As their root. The one that sends has root, and it alone changes sent and records.
	root        chan struct{}
	incarnation uint32
	sent        uint32
	records     [multicastWindow][]byte // by number
	listeners   []listener              // by rank
	asked       uint32                  // acknowledgements are awaited for all up to this number
	known       uint32                  // all have all up to this number
}

// listener is another process as the root of multicasts knows it.
type listener struct {
	acknowledges *Request // its acknowledgement, that it has all up to multicasts.asked; or nil
	lastAsk      uint32   // number
	asks         int      // since the last acknowledgement was asked for
	deaf         bool     // it gets records
}

// awaited is a multicast that a process waits for.
type awaited struct {
	comm             *Comm
	from             *source
	number           uint32
	looked, patience int
	asked            bool
}

// openMulticasts opens the port of multicasts, if they may be needed.
func (w *World) openMulticasts() (err error) {
	if !slices.ContainsFunc(w.cfg.Algorithms, func(a Algorithm) bool { return a.Name == byMulticast }) {
		return nil
	}
	w.asking = time.AfterFunc(askTick, w.ask)
	w.multicasts, err = w.ep.OpenPort(w.cfg.Port+2, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for k := range batch {
			m := &batch[k]
			rank, known := w.ranks[m.From.Node]
			err := wire.ErrMalformed
			if known {
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
		c.leaveMulticasts()
	}
	return err
}

// multicastState returns the communicator's, made at the first call. The caller holds World.mu.
func (c *Comm) multicastState() *multicasts {
	if c.multicasts == nil {
		n := len(c.members)
		c.multicasts = &multicasts{
			group:   mcd.GroupID(c.context ^ c.context>>16 ^ uint32(c.w.cfg.Port)<<8),
			sources: make([]*source, n), listeners: make([]listener, n),
			root: make(chan struct{}, 1), incarnation: incarnation.New(),
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

// multicast is a Bcast by multicasts.
func (o collective) multicast(buf []byte, root int) error {
	if err := o.checkRoot(root); err != nil || o.Size() == 1 {
		return err
	}
	m := o.joinMulticasts()
	if root != o.rank {
		return o.listen(m, buf, root)
	}
	select {
	case m.root <- struct{}{}:
		defer func() { <-m.root }()
	case <-o.ctx.Done():
		return o.ctx.Err()
	}
	err := o.awaitAcknowledgements(m)
	if err != nil {
		m.next(nil) // the others' Bcasts of this number are not answered
		return err
	}
	err = o.tell(m, buf)
	if acknowledges(m.sent) {
		o.askAll(m)
	}
	return err
}

// acknowledges reports whether the others acknowledge a multicast.
func acknowledges(number uint32) bool { return number == 1 || number%multicastAck == 0 }

// listen waits for the next multicast of a root, and says at times that all have come.
func (o collective) listen(m *multicasts, buf []byte, root int) error {
	w := o.w
	w.mu.Lock()
	r, s := w.spare.request(), m.source(root, o.members[root])
	o.begin(r, buf)
	number, err := s.begin(r)
	if err != nil {
		w.mu.Unlock()
		return err
	}
	came, with := s.deliver(number), s.rank
	if came {
		with = matching.AnySource // it may be down
	}
	if !w.refuses(r, with) { // else it gives mu back
		var expect []*process
		if came {
			w.complete(r, r.overflow())
		} else {
			expect = w.expected(s.rank)
			w.await(awaited{comm: o.Comm, from: s, number: number, patience: 2})
			w.askBehind(s)
		}
		w.run()
		w.expect(expect)
		err = w.layer.Handler.Await(o.ctx, &r.completion)
	}
	w.mu.Lock()
	w.complete(r, err) // if the wait has ended without
	err = r.completion.Err()
	s.end(number)
	w.unawait(s, number)
	w.spare.keepRequest(r)
	w.mu.Unlock()
	if acknowledges(number) { // also if it has failed: nobody asks for it any more
		acknowledged := o.send(root, nil)
		if err == nil && !errors.Is(acknowledged, ErrProcessFailed) { // a root that is gone forgets it
			err = acknowledged
		}
	}
	return err
}

// tell sends the root's next multicast. The error names the processes that are down.
func (o collective) tell(m *multicasts, buf []byte) error {
	w := o.w
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	record := m.next(&wire.Multicast{Context: o.context, Number: m.sent + 1, Incarnation: m.incarnation, Data: buf})
	var errs []error
	heard := false
	all := m.sent == 1 || len(record) > w.ep.MaxPayload()
	for k, rank := range o.members {
		switch {
		case k == o.rank:
		case w.all[rank].err != nil:
			errs = append(errs, w.all[rank].err)
		case all || m.listeners[k].deaf:
			w.queue(rank, item{raw: bytes.Clone(record)})
		default:
			heard = true
		}
	}
	if heard {
		w.stats.Multicasts++
	}
	w.run()
	if heard {
		errs = append(errs, w.multicasts.SendVia(o.ctx, 0, mcd.ToGroup(m.group, w.multicasts.ID()), record))
	}
	return errors.Join(errs...)
}

// next makes the next record. Without d it is empty, and answers nobody.
func (m *multicasts) next(d *wire.Multicast) []byte {
	m.sent++
	record := m.records[m.sent%multicastWindow][:0]
	if d != nil {
		record = wire.AppendMulticast(record, d)
	}
	m.records[m.sent%multicastWindow] = record
	return record
}

// askAll begins to wait for the acknowledgements of what was sent.
func (o collective) askAll(m *multicasts) {
	w := o.w
	for k := range m.listeners {
		if k == o.rank {
			continue
		}
		r := o.irecv(k, nil)
		w.mu.Lock()
		r.internal = true
		m.listeners[k].acknowledges, m.listeners[k].asks = r, 0
		w.mu.Unlock()
	}
	w.mu.Lock()
	m.asked = m.sent
	w.mu.Unlock()
}

// awaitAcknowledgements waits, before the next multicast would take the place of one that others
// may ask for, until all that are not down have acknowledged that.
func (o collective) awaitAcknowledgements(m *multicasts) error {
	if m.sent != 1 && m.sent+1-m.asked < multicastAck {
		return nil
	}
	for k := range m.listeners {
		l := &m.listeners[k]
		r := l.acknowledges
		if r == nil {
			continue
		}
		_, err := r.Wait(o.ctx)
		if err != nil && !errors.Is(err, ErrProcessFailed) {
			return err
		}
		o.w.mu.Lock()
		l.acknowledges = nil
		o.w.mu.Unlock()
		o.w.putRequest(r)
	}
	o.w.mu.Lock()
	m.known = m.asked
	o.w.mu.Unlock()
	return nil
}

// takeMulticast takes in a multicast's frame or, if it is reliable, its record. The caller holds
// mu.
func (w *World) takeMulticast(from matching.Rank, rec []byte, reliable bool) error {
	var d wire.Multicast
	if err := wire.ParseMulticast(&d, rec); err != nil || w.closed || w.all[from].err != nil {
		return err
	}
	c := w.comms[d.Context]
	if c == nil {
		return nil // it was freed, or is not made yet: then it is asked for
	}
	k := c.rankOf(from)
	m := c.multicastState()
	switch {
	case k < 0 || d.Ask && !reliable:
		return wire.ErrMalformed
	case d.Ask:
		m.answer(c, k, d.Number)
		return nil
	}
	s := m.source(k, from)
	if reliable {
		s.incarnation = d.Incarnation
	}
	if s.incarnation == d.Incarnation {
		if r := s.take(d.Number, d.Data); r != nil {
			w.complete(r, r.overflow())
		}
		w.askBehind(s)
	}
	return nil
}

// answer sends a process a multicast that it has asked for. One that was not sent yet is asked for
// again. The caller holds World.mu.
func (m *multicasts) answer(c *Comm, rank int, number uint32) {
	record := m.records[number%multicastWindow]
	if m.sent-number >= multicastWindow || len(record) == 0 {
		return
	}
	c.w.queue(c.members[rank], item{raw: bytes.Clone(record)})
	if l := &m.listeners[rank]; l.lastAsk != number {
		l.lastAsk = number
		l.asks++
		l.deaf = l.deaf || l.asks >= deafFrom
	}
}

// flushMulticasts sends what processes are not known to have: this one answers nobody from then
// on. The caller holds mu.
func (w *World) flushMulticasts() {
	for _, c := range w.comms {
		m := c.multicasts
		if m == nil || m.sent == 0 {
			continue
		}
		for k, rank := range c.members {
			if rank == w.me.rank {
				continue
			}
			has := m.asked
			if m.listeners[k].acknowledges != nil {
				has = m.known
			}
			for number := max(has, m.sent-min(m.sent, multicastWindow)) + 1; number <= m.sent; number++ {
				if record := m.records[number%multicastWindow]; len(record) > 0 {
					w.queue(rank, item{raw: bytes.Clone(record)})
				}
			}
		}
	}
	w.beginTouched()
}

// joinMulticasts has the process hear the communicator's multicasts. Where it cannot it asks for
// each, until the root takes it for deaf.
func (c *Comm) joinMulticasts() *multicasts {
	w := c.w
	w.mu.Lock()
	m := c.multicastState()
	join := !m.joining && !w.closed && !c.left
	m.joining = true
	w.mu.Unlock()
	if join && w.ep.Join(m.group) == nil {
		w.mu.Lock()
		m.joined = true
		ended := w.closed || c.left
		w.mu.Unlock()
		if ended {
			c.leaveMulticasts()
		}
	}
	return m
}

// leaveMulticasts undoes joinMulticasts.
func (c *Comm) leaveMulticasts() {
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

// await has a multicast asked for, if it does not come. The caller holds mu.
func (w *World) await(a awaited) {
	w.awaited = append(w.awaited, a)
	if !w.asks {
		w.asks = true
		w.asking.Reset(askTick)
	}
}

// unawait ends await. The caller holds mu.
func (w *World) unawait(s *source, number uint32) {
	for k := range w.awaited {
		if a := &w.awaited[k]; a.from == s && a.number == number {
			last := len(w.awaited) - 1
			*a, w.awaited[last] = w.awaited[last], awaited{}
			w.awaited = w.awaited[:last]
			return
		}
	}
}

// ask asks for the multicasts that have not come.
func (w *World) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks = len(w.awaited) > 0 && !w.closed; !w.asks {
		return
	}
	w.asking.Reset(askTick)
	for k := range w.awaited {
		a := &w.awaited[k]
		if a.looked++; a.looked >= a.patience && a.from.expects(a.number) {
			w.askFor(a)
		}
	}
	w.beginTouched()
}

// askBehind asks for the multicasts that have not come, but a later one of that source has. The
// caller holds mu, and has what is queued carried out.
func (w *World) askBehind(s *source) {
	for k := range w.awaited {
		if a := &w.awaited[k]; a.from == s && !a.asked && s.latest-a.number < multicastWindow && s.expects(a.number) {
			w.askFor(a)
		}
	}
}

func (w *World) askFor(a *awaited) {
	a.asked, a.looked, a.patience = true, 0, min(2*a.patience, maxPatience)
	w.stats.Asked++
	w.queue(a.from.rank, item{raw: wire.AppendMulticast(nil, &wire.Multicast{
		Ask: true, Context: a.comm.context, Number: a.number,
	})})
}
