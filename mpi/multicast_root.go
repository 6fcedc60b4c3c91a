package mpi

import (
	"bytes"
	"errors"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// root is a process' part in the multicasts that it sends in a communicator. World.mu guards it.
type root struct {
	incarnation uint32
	begun       uint32   // how many Bcasts were called
	waiting     []uint32 // of these, which were not sent yet
	kept        [multicastWindow]kept
	listeners   []listener // by rank
}

// kept is a multicast that was sent, as long as somebody may ask for it.
type kept struct {
	number uint32
	record []byte
}

// listener is another process as the root of multicasts knows it.
type listener struct {
	met   bool   // it takes the root's frames, as it has the first record
	has   uint32 // all up to this one, or has given them up: then also such as were not called here
	left  bool   // it takes none any more
	deaf  bool   // it gets records
	pause int    // how many times more it tells what it has, until it is not taken for deaf
	last  int    // what pause was at first
	well  int    // how many times it has told that it has missed few, since it was deaf
	heard uint32 // what is behind this number goes as frames
}

// begin numbers a Bcast that is called.
func (t *root) begin() uint32 {
	t.begun++
	t.waiting = append(t.waiting, t.begun)
	return t.begun
}

// lead is the root's part of a multicast, unless err says that it has failed already. Its error
// names the processes that are down. The caller holds World.mu, which lead gives back.
func (o collective) lead(m *multicasts, number uint32, buf []byte, err error) error {
	if err = o.mayTell(m, number, err); err != nil {
		return err
	}
	return o.tell(m, number, buf)
}

// mayTell waits until a multicast may go, or says why it does not. The caller holds World.mu, which
// mayTell gives back unless it may; then it goes at once, or is given up.
func (o collective) mayTell(m *multicasts, number uint32, failed error) (err error) {
	err = errUnreturned
	defer func() {
		m.root.waiting = slices.DeleteFunc(m.root.waiting, func(n uint32) bool { return n == number })
		if err != nil {
			o.w.mu.Unlock()
		}
	}()
	if failed != nil {
		return failed
	}
	if err := o.awaitRoom(m, number); err != nil {
		return err
	}
	return o.state()
}

// awaitRoom waits until a multicast takes the place of one that nobody asks for any more. The
// caller holds World.mu, which awaitRoom gives back meanwhile.
func (o collective) awaitRoom(m *multicasts, number uint32) error {
	if o.hasRoom(m, number) {
		return nil
	}
	if err := o.state(); err != nil {
		return err
	}
	w := o.w
	r := w.spare.request()
	o.begin(r, nil)
	r.multicast = multicastWait{multicasts: m, number: number}
	w.activate(r)
	var expect []*process
	for _, rank := range o.members {
		expect = append(expect, w.expected(rank)...)
	}
	defer w.spare.keepRequest(r)
	o.beginAsking(nil, number)
	defer o.endAsking(nil, number)
	return o.sleep(r, expect)
}

// lacks reports whether the listener may ask for the multicast whose place another one takes.
func (l *listener) lacks(number uint32) bool { return int32(number-l.has) > multicastWindow }

// hasRoom reports whether all that live have the multicast whose place another one takes; and the
// first, before the second goes. The caller holds World.mu.
func (c *Comm) hasRoom(m *multicasts, number uint32) bool {
	for k, rank := range c.members {
		l := &m.root.listeners[k]
		stranger := number != 1 && !l.met
		if k != c.rank && (stranger || l.lacks(number)) && !l.left && c.w.all[rank].err == nil {
			return false
		}
	}
	return true
}

// tell sends a multicast. The caller holds World.mu, which tell gives back.
func (o collective) tell(m *multicasts, number uint32, buf []byte) error {
	w := o.w
	place := &m.root.kept[number%multicastWindow]
	place.number = number
	place.record = wire.AppendMulticast(place.record[:0], &wire.Multicast{
		Kind: wire.Data, Context: o.context, Number: number, Incarnation: m.root.incarnation,
		Operation: o.operation(), Told: m.tellAll(), Data: buf,
	})
	var errs []error
	heard := false
	for k, rank := range o.members {
		l := &m.root.listeners[k]
		switch {
		case k == o.rank || l.left:
		case w.all[rank].err != nil:
			errs = append(errs, w.all[rank].err)
		case number == 1 || l.deaf || len(place.record) > w.ep.MaxPayload():
			w.queue(rank, item{raw: bytes.Clone(place.record)})
		default:
			heard = true
		}
	}
	var later []byte
	to := mcd.ToGroup(m.group, w.multicasts.ID())
	if heard {
		w.stats.Multicasts++
		if err := w.multicasts.TrySend(0, to, place.record); errors.Is(err, transport.ErrBusy) {
			later = bytes.Clone(place.record)
		} else if errors.Is(err, mcd.ErrClosed) {
			errs = append(errs, ErrClosed)
		} // else the frame is lost
	}
	w.run()
	if later != nil {
		err := w.multicasts.SendVia(o.ctx, 0, to, later)
		if errors.Is(err, mcd.ErrClosed) || o.ctx.Err() != nil {
			errs = append(errs, ofClosed(err))
		}
	}
	return errors.Join(errs...)
}

// tellAll returns what a multicast tells all: what has come of theirs. The caller holds World.mu.
func (m *multicasts) tellAll() []byte {
	if len(m.sources) > maxTold {
		return nil
	}
	m.told = m.told[:0]
	for _, s := range m.sources {
		number := uint32(0)
		if s != nil {
			number = s.ended
			s.told = number
		}
		m.told = wire.AppendTold(m.told, number)
	}
	return m.told
}

// answer answers a process that asks for a multicast. One that was not sent yet is asked for again.
// The caller holds World.mu.
func (m *multicasts) answer(c *Comm, rank int, number uint32) {
	place := &m.root.kept[number%multicastWindow]
	switch ahead := m.root.begun - number; {
	case place.number == number && place.record != nil:
		c.w.queueAgain(c.members[rank], item{raw: bytes.Clone(place.record)})
	case ahead < 1<<31 && !slices.Contains(m.root.waiting, number):
		c.answerMulticast(rank, &wire.Multicast{Kind: wire.Withdrawn, Number: number})
	}
}

// hasAll notes up to which number a listener has all, and reports whether that is new: a record may
// come behind a frame that was sent later.
func (l *listener) hasAll(number uint32) (news bool) {
	ahead := number - l.has
	news = ahead != 0 && ahead < 1<<31
	if news {
		l.has = number
	}
	return news
}

// hearsWell says that a listener has missed few of the last multicastAck.
func (l *listener) hearsWell(number uint32) {
	l.heard = number - multicastAck // else it falls behind by half of all numbers
	if l.well++; l.well >= l.last {
		l.last = 0
	}
}

// hear takes in a Have. The caller holds World.mu.
func (m *multicasts) hear(rank int, d *wire.Multicast) {
	l := &m.root.listeners[rank]
	l.met = true
	l.hasAll(d.Number)
	switch {
	case l.deaf:
		l.pause--
		l.deaf, l.heard = l.pause > 0, m.root.begun
	case int32(d.Number-l.heard) < multicastAck: // it tells of records, too
	case d.Missed >= deafFrom:
		l.last = max(deafPause, 2*l.last)
		l.deaf, l.pause, l.well = true, l.last, 0
	default:
		l.hearsWell(d.Number)
	}
}

// hearTold takes in up to which number a process says that it has all, where it does not say how
// many it has missed: if it has missed some, it says so by the next Have. The caller holds
// World.mu, and has what is queued carried out.
func (c *Comm) hearTold(rank int, number uint32) {
	l := &c.multicasts.root.listeners[rank]
	if !l.met || !l.hasAll(number) {
		return
	}
	if !l.deaf && int32(number-l.heard) >= 2*multicastAck {
		l.hearsWell(number)
	}
	c.goOn()
}

// goOn has the multicasts go that have room now. The caller holds World.mu.
func (c *Comm) goOn() {
	m := c.multicasts
	if m == nil || len(m.root.waiting) == 0 {
		return
	}
	for r := c.w.active; r != nil; {
		next := r.next
		if v := r.multicast; v.multicasts == m && c.hasRoom(m, v.number) {
			c.w.complete(r, nil)
		}
		r = next
	}
}

// flushMulticasts sends what processes are not known to have: this one answers nobody from then on.
// The caller holds World.mu, and has what is queued carried out.
func (c *Comm) flushMulticasts() {
	m := c.multicasts
	if m == nil {
		return
	}
	for k, rank := range c.members {
		l := &m.root.listeners[k]
		if k == c.rank || l.left || c.w.all[rank].err != nil {
			continue
		}
		has := m.root.begun - multicastWindow // at the least
		if int32(l.has-has) > 0 {
			has = l.has
		}
		for number := has + 1; int32(m.root.begun-number) >= 0; number++ {
			if place := &m.root.kept[number%multicastWindow]; place.number == number && place.record != nil {
				c.w.queue(rank, item{raw: bytes.Clone(place.record)})
			}
		}
	}
}
