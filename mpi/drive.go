package mpi

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// What the engine wants of other processes is queued by process, and carried out in this order by
// one goroutine at a time: the one that has made the call; the one that polls, if it is an answer
// that goes at once; or else one that is started for it and ends with the queue.

// item is a record that goes to a process, with the bytes of an eager message; or with a write
// before it.
type item struct {
	raw     []byte // the record, if it is not of the engine
	record  matching.Record
	request *Request // whose bytes go, or whose memory the record names; or nil
	write   bool
	to      matching.Memory // of a write
	size    int             // likewise, how much is written
}

// act carries out what the engine has appended to out, but for what goes to other processes, which
// it queues. The caller holds mu.
func (w *World) act() {
	for k := range w.out {
		o := &w.out[k]
		switch o.Do {
		case matching.Push:
			w.queue(o.To, item{record: o.Record, request: requestOf(o)})
		case matching.Write:
			it := item{record: o.Record, request: requestOf(o), write: true, to: o.Memory, size: o.Send.Size}
			if it.size > o.Capacity {
				it.size = 0
			}
			w.queue(o.To, it)
		case matching.Keep:
			w.stats.Kept++
			o.Message.Data = append(w.spare.memory(), o.Message.Data...)
			w.wakeProbes()
		case matching.Deliver:
			r := requestOf(o)
			copy(r.memory, o.Message.Data)
			w.received(r, o.Message.Source, &o.Message.Envelope)
			if o.Message.Kept() {
				w.spare.keepMemory(o.Message.Data)
				w.engine.Release(o.Message)
			}
		case matching.CompleteReceive:
			w.received(requestOf(o), o.Message.Source, &o.Message.Envelope)
		case matching.Fetch:
			w.fetch(requestOf(o), o)
		case matching.CompleteSend:
			w.complete(requestOf(o), nil)
		case matching.DropSend:
			r := requestOf(o)
			w.complete(r, fmt.Errorf("rank %d: %w", r.comm.rankOf(o.Send.To), ErrFreed))
		case matching.CancelReceive:
			r := requestOf(o)
			w.complete(r, cmp.Or(r.stopped, ErrCancelled))
		case matching.FailSend:
			w.complete(requestOf(o), w.all[o.Send.To].err)
		case matching.FailReceive:
			w.complete(requestOf(o), w.all[o.Receive.Source].err)
		}
	}
}

// requestOf returns the request that an action is for, or nil.
func requestOf(o *matching.Output) *Request {
	switch {
	case o.Send != nil:
		return o.Send.Owner.(*Request)
	case o.Receive != nil:
		return o.Receive.Owner.(*Request)
	}
	return nil
}

// queueAgain is queue of an answer to what is asked again, or will be: beside many others it is
// dropped. So a process that asks, and takes nothing, has little kept for it.
func (w *World) queueAgain(to matching.Rank, it item) {
	if len(w.all[to].queue) < maxAnswers {
		w.queue(to, it)
	}
}

func (w *World) queue(to matching.Rank, it item) {
	p := w.all[to]
	if p.err != nil {
		return
	}
	if len(p.queue) == 0 {
		w.touched = append(w.touched, p)
	}
	if it.request != nil {
		it.request.queued.Add(1)
	}
	p.met = true
	if p.queue = append(p.queue, it); cap(p.queue) > cap(p.memory) {
		p.memory = p.queue
	}
}

// received completes a receive, unless the world was closed meanwhile.
func (w *World) received(r *Request, source matching.Rank, e *matching.Envelope) {
	if !r.active {
		return
	}
	r.status = Status{Source: r.comm.rankOf(source), Tag: int(e.Tag), size: e.Size}
	var err error
	if e.Size > len(r.memory) {
		err = truncated(e.Size, len(r.memory))
	}
	w.complete(r, err)
}

// run has the calling goroutine carry out what act has queued. The caller holds mu, which run gives
// back.
func (w *World) run() {
	var one *process
	if len(w.touched) > 0 && !w.touched[0].busy {
		one = w.touched[0]
		one.busy = true
	}
	w.beginTouched()
	w.mu.Unlock()
	if one != nil {
		w.carryOut(one, false)
	}
}

// begin has a goroutine carry out a process' queue, unless one does. The caller holds mu.
func (w *World) begin(p *process) {
	if !p.busy && len(p.queue) > 0 {
		p.busy = true
		w.running.Go(func() { w.carryOut(p, true) }) // until the queue is empty, or the world ends
	}
}

// beginTouched is begin for all processes that act has queued something for. The caller holds mu.
func (w *World) beginTouched() {
	for _, p := range w.touched {
		w.begin(p)
	}
	w.touched = w.touched[:0]
}

// answer posts what is queued for a process in the goroutine that polls, as far as there is room
// and it is for the sender of the record that is being handled. The caller holds mu.
func (w *World) answer(p *process, from memfifo.Sender) {
	for !p.busy && len(p.queue) > 0 && p.ID == from.Node() {
		it := &p.queue[0]
		if it.write || it.record.Kind == matching.Offer || it.record.Kind == matching.Request || w.tooLong(it) {
			break
		}
		p.record = it.append(p.record[:0])
		if from.Post(activemsg.HandlerID, 0, p.record) != nil {
			break
		}
		w.pushed(p)
	}
	w.begin(p)
}

// writes reports whether it has bytes to write: there are none for a receive that is too short.
func (it *item) writes() bool { return it.write && it.size > 0 }

func (w *World) tooLong(it *item) bool {
	return len(it.raw) > w.frame || it.record.Kind == matching.Eager && wire.HeadLen+8+it.record.Size > w.frame
}

func (it *item) append(b []byte) []byte {
	if it.raw != nil {
		return append(b, it.raw...)
	}
	b = wire.Append(b, &it.record)
	if it.record.Kind == matching.Eager {
		b = append(b, it.request.memory...)
	}
	return b
}

// pop removes the first item. The caller holds mu.
func (w *World) pop(p *process) item {
	it := p.queue[0]
	p.queue[0] = item{}
	if p.queue = p.queue[1:]; len(p.queue) == 0 {
		p.queue = p.memory[:0]
	}
	w.drop(it)
	return it
}

// drop forgets an item: its request's memory is not used by it any more. The caller holds mu.
func (w *World) drop(it item) {
	if it.request != nil {
		it.request.queued.Add(-1)
	}
	w.idle.Broadcast()
}

// pushed notes that the first item of a queue was carried out. The caller holds mu.
func (w *World) pushed(p *process) {
	it := w.pop(p)
	switch {
	case it.write:
		w.stats.Written++
		w.stats.WrittenBytes += uint64(it.size)
		w.complete(it.request, nil)
	case it.record.Kind == matching.Eager:
		w.stats.Eager++
		if it.record.ID == 0 {
			w.complete(it.request, nil)
		}
	case it.record.Kind == matching.Request:
		w.stats.Requested++
		w.stats.RequestedBytes += uint64(it.record.Size)
	}
}

// carryOut carries out the queue of a process that this goroutine has made busy. If it may not
// wait, another one goes on.
func (w *World) carryOut(p *process, wait bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(p.queue) > 0 {
		it := p.queue[0]
		if r := it.request; w.closed && r != nil && !r.active && it.record.Kind != matching.Offer {
			w.pop(p)
			continue
		}
		if it.record.Kind == matching.Offer && w.engine.Offered(it.record.ID) == nil {
			it.request = nil // a message has gone into the receive: its sender drops the offer
		}
		err := w.carryOutside(p, &it, wait)
		switch {
		case err == nil && it.writes():
			return // sent goes on, or has
		case errors.Is(err, memfifo.ErrBusy) && !wait:
			p.busy = false
			w.begin(p)
			return
		case errors.Is(err, memfifo.ErrPeerDown), errors.Is(err, memfifo.ErrClosed), errors.Is(err, mcd.ErrUnknownNode):
			w.fail(p.ID, err)
			w.pop(p)
		case err != nil: // of ours
			if it.request != nil {
				w.complete(it.request, err)
			}
			w.abandon(p, err) // it waits for a record that does not come
			w.pop(p)
		default:
			w.pushed(p)
		}
	}
	p.busy = false
	w.idle.Broadcast()
}

// carryOutside is carry by one that holds mu, which is given back meanwhile. It may not return, as
// a function of another port's panics in it or ends the goroutine: then another goroutine writes
// anew; but of a record nobody knows whether it is on its way, and the process is given up.
func (w *World) carryOutside(p *process, it *item, wait bool) error {
	w.mu.Unlock()
	returned := false
	defer func() {
		if w.mu.Lock(); !returned {
			p.busy = false
			if !it.writes() {
				w.lose(p)
			}
			w.begin(p)
		}
	}()
	err := w.carry(p, it, wait)
	returned = true
	return err
}

// lose gives a process up that the first item of its queue may not have gone to. The caller holds
// mu.
func (w *World) lose(p *process) {
	it := w.pop(p)
	if it.request != nil && it.record.Kind != matching.Offer {
		w.complete(it.request, errUnreturned)
	}
	w.abandon(p, errUnreturned)
}

// abandon is giveUp of a process that has to be told no more once the world is closed. The caller
// holds mu.
func (w *World) abandon(p *process, err error) {
	if w.closed {
		w.fail(p.ID, err)
	} else {
		w.giveUp(p, err)
	}
}

// carry carries out an item. ErrBusy means that it would have to wait.
func (w *World) carry(p *process, it *item, wait bool) error {
	if p == w.me {
		return w.carryHere(it)
	}
	if it.writes() {
		return w.layer.Domain.PostPut(w.put(p, it))
	}
	if it.record.Kind == matching.Gone && wait { // memfifo takes nothing before it has told what is lost
		_ = w.layer.Domain.Flush(w.ended, p.ID)
	}
	if it.record.Kind == matching.Offer || it.record.Kind == matching.Request {
		err := w.lend(it)
		if errors.Is(err, ErrWindows) && it.record.Kind == matching.Request {
			w.mu.Lock()
			w.disown(it.request, err)
			w.mu.Unlock()
		} else if err != nil {
			return err
		}
	}
	p.record = it.append(p.record[:0])
	if !w.tooLong(it) {
		err := p.To.PostPush(p.record)
		if !errors.Is(err, memfifo.ErrBusy) || !wait {
			return err
		}
	} else if !wait && (it.request == nil || !it.request.blocking) {
		return memfifo.ErrBusy
	}
	return p.To.Push(w.ended, p.record)
}

// put is the item that a process' queue has first, as it is posted. The caller holds mu, or has
// made the process busy.
func (w *World) put(p *process, it *item) *memfifo.PostedPut {
	p.record = it.append(p.record[:0])
	p.post.Window = memfifo.Key{Node: p.ID, ID: it.to.Window, Secret: it.to.Secret}
	p.post.Data, p.post.Record = it.request.memory[:it.size], p.record
	return &p.post
}

// sent takes the first item of a process' queue away, whose bytes are sent, or lost: a
// memfifo.PostedPut's function. It goes on with a write behind it; of a world that is closed those
// are dropped.
func (w *World) sent(p *process, err error) (next *memfifo.PostedPut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.post.Data = nil
	if err == nil {
		w.pushed(p)
	} else {
		w.fail(p.ID, err)
		w.pop(p)
	}
	if err == nil && len(p.queue) > 0 && p.queue[0].writes() && !w.closed {
		return w.put(p, &p.queue[0])
	}
	p.busy = false
	w.idle.Broadcast()
	w.begin(p)
	return nil
}

// disown ends a send whose message is on its way: that keeps its place, and its receiver is
// refused. The caller holds mu.
func (w *World) disown(r *Request, err error) {
	w.engine.Disown(&r.send, &Request{comm: r.comm, withdrawn: true})
	w.complete(r, err)
}

// carryHere carries out an item for this process itself, unless the world was closed meanwhile:
// then the engine's requests are their callers' again.
func (w *World) carryHere(it *item) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	var data []byte
	if it.record.Kind == matching.Eager {
		data = it.request.memory
	}
	var err error
	if w.out, err = w.engine.Handle(w.me.rank, &it.record, data, w.out[:0]); err != nil {
		return err
	}
	w.act()
	w.beginTouched()
	return nil
}

// lend makes a request's memory one that the other process may use, until the request is complete.
func (w *World) lend(it *item) (err error) {
	if it.request == nil {
		return nil
	}
	w.mu.Lock()
	window := it.request.window
	w.mu.Unlock()
	if window == nil {
		most := maxLent
		if it.record.Kind == matching.Offer {
			most = maxWindows
		}
		if window, err = w.takeWindow(most); err != nil {
			return err
		}
	}
	key, err := window.Rebind(it.request.memory)
	it.request.window = window
	it.record.Memory = matching.Memory{Window: key.ID, Secret: key.Secret}
	return err
}
