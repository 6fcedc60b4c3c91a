package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
)

// Flow is a stream of bytes from one host to another, once and in order, over a window of full
// frames: what TCP does. Its acks travel back on the VID that the receiving host has for the
// sender.
type Flow struct {
	net      *Network
	id       int32
	from, to *host
	arrived  func(bytes int64)

	sender     sender
	progress   monotime.Time // when the sender last heard of some, or began
	retransmit timer

	receiver receiver
	delayed  timer
	echo     monotime.Time // when the segment was sent that the next ack answers
	received int64
}

// NewFlow makes a flow between two hosts, given by number. Each time bytes arrive in order,
// arrived is called with how many; it may be nil.
func (n *Network) NewFlow(from, to int, arrived func(bytes int64)) *Flow {
	f := &Flow{net: n, id: int32(len(n.flows)), from: &n.hosts[from], to: &n.hosts[to], arrived: arrived}
	f.sender = newSender(n.config.Window)
	f.receiver = newReceiver(len(f.sender.segments))
	f.retransmit.init(n.queue, f.timeout)
	f.delayed.init(n.queue, f.acknowledge)
	n.flows = append(n.flows, f)
	return f
}

// Send appends bytes to the stream. It does not wait. math.MaxInt64 has no end.
func (f *Flow) Send(bytes int64) {
	if f.sender.una == f.sender.nxt {
		f.progress = f.net.queue.Now()
	}
	f.sender.unsent = max(f.sender.unsent, f.sender.unsent+bytes) // the sum may overflow
	f.push()
}

// Received returns how many bytes have arrived in order.
func (f *Flow) Received() int64 { return f.received }

// FlowCounters of a flow.
type FlowCounters struct {
	Received   int64  `json:"received"`   // bytes in order
	Resent     uint64 `json:"resent"`     // segments
	Timeouts   uint64 `json:"timeouts"`   // of the sender
	Duplicates uint64 `json:"duplicates"` // segments that arrived again
}

// Counters returns what passed since the flow was made.
func (f *Flow) Counters() FlowCounters {
	return FlowCounters{f.received, f.sender.retransmitted, f.sender.timeouts, f.receiver.duplicates}
}

// Flows returns the sums of all flows' counters.
func (n *Network) Flows() (sum FlowCounters) {
	for _, f := range n.flows {
		c := f.Counters()
		sum.Received += c.Received
		sum.Resent += c.Resent
		sum.Timeouts += c.Timeouts
		sum.Duplicates += c.Duplicates
	}
	return sum
}

// push sends what the window allows.
func (f *Flow) push() {
	now := f.net.queue.Now()
	for {
		seq, payload, push, ok := f.sender.next()
		if !ok {
			break
		}
		f.from.transmit(f.to, &frame{flow: f.id, seq: seq, payload: uint16(payload), push: push, sent: now})
	}
	if at, ok := f.sender.rtoDeadline(f.progress); ok {
		f.retransmit.set(at)
	} else {
		f.retransmit.stop()
	}
}

func (f *Flow) timeout() {
	f.sender.onRTO()
	f.progress = f.net.queue.Now()
	f.push()
}

// receive takes in a frame of the flow, at whichever end it is for.
func (f *Flow) receive(fr *frame) {
	now := f.net.queue.Now()
	if fr.ack {
		if f.sender.onAck(fr, now.Sub(fr.sent)) {
			f.progress = now
		}
		f.push()
		return
	}
	f.echo = fr.sent
	bytes, ackNow := f.receiver.take(fr)
	if ackNow {
		f.acknowledge()
	} else if f.delayed.at.IsZero() {
		f.delayed.set(now.Add(delayedAck))
	}
	if f.received += bytes; bytes > 0 && f.arrived != nil {
		f.arrived(bytes)
	}
}

func (f *Flow) acknowledge() {
	f.delayed.stop()
	ack := frame{flow: f.id, ack: true, sent: f.echo}
	f.receiver.acknowledge(&ack)
	f.to.transmit(f.from, &ack)
}
