package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
)

// Flow is a stream of bytes from one host to another, once and in order, with a window of full
// frames, as TCP has it. Its acks travel back on the VID that the receiving host has for the
// sender.
type Flow struct {
	net      *Network
	id       int32
	from, to *host
	onBytes  func(bytes int64)

	sender     sender
	progress   monotime.Time // of the sender: the start of its retransmission timer
	retransmit timer

	receiver   receiver
	delayedAck timer
	echoed     monotime.Time // timestamp for the next ack to echo (RFC 7323 §3)
	received   int64
}

// NewFlow makes a flow between two hosts, given by number. onBytes, which may be nil, is called
// with the number of bytes that have arrived in order, each time that some do.
func (n *Network) NewFlow(from, to int, onBytes func(bytes int64)) *Flow {
	f := &Flow{net: n, id: int32(len(n.flows)), from: &n.hosts[from], to: &n.hosts[to], onBytes: onBytes}
	f.sender = newSender(n.config.Window, n.config.Congestion)
	f.receiver = newReceiver(len(f.sender.segments))
	f.retransmit.init(n.queue, f.onRTO)
	f.delayedAck.init(n.queue, f.sendAck)
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
	Received      int64  `json:"received"`      // bytes in order
	Retransmitted uint64 `json:"retransmitted"` // segments
	Timeouts      uint64 `json:"timeouts"`      // of the sender
	Duplicates    uint64 `json:"duplicates"`    // segments that arrived again
}

// Counters returns the counts since the flow was made.
func (f *Flow) Counters() FlowCounters {
	return FlowCounters{f.received, f.sender.retransmitted, f.sender.timeouts, f.receiver.duplicates}
}

// Flows returns the sums of all flows' counters.
func (n *Network) Flows() (sum FlowCounters) {
	for _, f := range n.flows {
		c := f.Counters()
		sum.Received += c.Received
		sum.Retransmitted += c.Retransmitted
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
		f.from.transmit(f.to, &frame{flow: f.id, seq: seq, payload: uint16(payload), push: push, sentAt: now})
	}
	if at, ok := f.sender.rtoDeadline(f.progress); ok {
		f.retransmit.set(at)
	} else {
		f.retransmit.stop()
	}
}

// onRTO is the retransmission timer.
func (f *Flow) onRTO() {
	f.sender.onRTO()
	f.progress = f.net.queue.Now()
	f.push()
}

// receive handles a frame of the flow: an ack at the sender, a segment at the receiver.
func (f *Flow) receive(fr *frame) {
	now := f.net.queue.Now()
	if fr.ack {
		if f.sender.onAck(fr, now) {
			f.progress = now
		}
		f.push()
		return
	}
	f.echoed = fr.sentAt
	bytes, ackNow := f.receiver.onSegment(fr)
	if ackNow {
		f.sendAck()
	} else if f.delayedAck.due.IsZero() {
		f.delayedAck.set(now.Add(ackDelay))
	}
	if f.received += bytes; bytes > 0 && f.onBytes != nil {
		f.onBytes(bytes)
	}
}

// sendAck sends an ack at once.
func (f *Flow) sendAck() {
	f.delayedAck.stop()
	ack := frame{flow: f.id, ack: true, sentAt: f.echoed}
	f.receiver.fillAck(&ack)
	f.to.transmit(f.from, &ack)
}
