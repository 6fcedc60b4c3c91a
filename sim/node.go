package sim

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// node is a processor: the task that it runs, and those that wait, first come, first served.
type node[M any] struct {
	waiting     int      // tasks from first to last
	running     *task[M] // begun, or waiting for the gap of its NIC or the end of a pause
	first, last *task[M] // waiting for the processor
	resume      monotime.Time
	down        bool
}

func dead[M any]() node[M] { return node[M]{down: true} }

// A task occupies a processor. It has one event in the queue once it is the processor's first. A
// unicast task becomes the message that it sends:
//
//	kind                event            next
//	unicast             the end of o_s   flight: the frame has left
//	multicast           the end of o_s   done; a flight for each other node
//	flight              it arrives       receipt, waiting for the receiver's processor
//	receipt             the end of o_r   done: deliver
//	work                its end          done: f
//	dropped             any              done: its node has crashed
//	any with processor  before its end   the same, event again at its end: there was a pause
type task[M any] struct {
	kind          kind
	from, to, nic int32
	start, end    monotime.Time // once running
	cost          time.Duration // of work
	f             func()        // of work
	m             M
	next          *task[M] // behind it at its processor, or in the list of free ones
	event         func()   // made once, so that scheduling allocates nothing
}

type kind uint8

const (
	unicast kind = iota
	multicast
	flight
	receipt
	work
	dropped
)

func (n *Network[M]) newTask(k kind, from, to, nic int, m M) *task[M] {
	t := n.free
	if t == nil {
		t = new(task[M])
		t.event = func() { n.event(t) }
	} else {
		n.free, t.next = t.next, nil
	}
	t.kind, t.from, t.to, t.nic, t.m = k, int32(from), int32(to), int32(nic), m
	return t
}

func (n *Network[M]) release(t *task[M]) {
	var none M
	t.m, t.f, t.next = none, nil, n.free // so that it keeps nothing alive
	n.free = t
}

// event is the task's event in the queue.
func (n *Network[M]) event(t *task[M]) {
	switch {
	case t.kind == dropped:
		n.release(t)
	case t.kind == flight:
		n.arrive(t)
	case n.queue.Now().Before(t.end):
		n.queue.At(t.end, t.event)
	default:
		n.finish(t)
	}
}

// enqueue puts a task behind the others of the node's processor.
func (n *Network[M]) enqueue(node int, t *task[M]) {
	p := &n.nodes[node]
	if p.first == nil {
		p.first = t
	} else {
		p.last.next = t
	}
	p.last = t
	p.waiting++
	n.begin(p)
}

// begin gives an idle processor the first waiting task.
func (n *Network[M]) begin(p *node[M]) {
	t := p.first
	if t == nil || p.running != nil {
		return
	}
	p.running, p.first, t.next = t, t.next, nil
	p.waiting--
	t.start = latest(n.queue.Now(), p.resume)
	cost := t.cost
	switch t.kind {
	case unicast, multicast:
		t.start, cost = latest(t.start, n.sendAt[n.port(t.from, t.nic)]), n.config.Os
	case receipt:
		t.start, cost = latest(t.start, n.receiveAt[n.port(t.to, t.nic)]), n.config.Or
	}
	t.end = t.start.Add(cost)
	n.queue.At(t.end, t.event)
}

// finish ends the running task. The functions that it calls may crash the node, or give it more
// tasks.
func (n *Network[M]) finish(t *task[M]) {
	p := &n.nodes[t.from]
	if t.kind == receipt {
		p = &n.nodes[t.to]
	}
	p.running = nil
	switch t.kind {
	case work:
		f := t.f
		n.release(t)
		f()
	case receipt:
		n.receiveAt[n.port(t.to, t.nic)] = t.start.Add(n.config.Gap)
		n.count.Delivered++
		to, from, nic, m := int(t.to), int(t.from), int(t.nic), t.m
		n.release(t)
		n.deliver(to, from, nic, m)
	default:
		n.sendAt[n.port(t.from, t.nic)] = t.start.Add(n.config.Gap)
		n.depart(t)
	}
	n.begin(p)
}

// arrive hands a frame to the receiver's processor.
func (n *Network[M]) arrive(t *task[M]) {
	if n.nodes[t.to].down {
		n.count.Lost++
		n.release(t)
		return
	}
	if ring := n.config.Faults.Ring; ring > 0 && n.nodes[t.to].waiting >= ring {
		n.count.Lost++
		n.count.Overrun++
		n.release(t)
		return
	}
	t.kind = receipt
	n.enqueue(int(t.to), t)
}

// drop counts a task whose node crashed.
func (n *Network[M]) drop(t *task[M]) {
	if t.kind == receipt {
		n.count.Lost++
	}
}

// postpone moves the end of the running task for a pause, which begins now or at the end of an
// earlier one.
func (t *task[M]) postpone(now, from, until monotime.Time) {
	late := until.Sub(from)
	if !t.start.Before(now) { // not begun: it waits for the later of its start and the pause's end
		late = max(until.Sub(t.start), 0)
		t.start = t.start.Add(late)
	}
	t.end = t.end.Add(late)
}

// port is the index of a node's NIC.
func (n *Network[M]) port(node, nic int32) int { return int(node)*n.config.NICs + int(nic) }

func latest(a, b monotime.Time) monotime.Time {
	if a.Before(b) {
		return b
	}
	return a
}
