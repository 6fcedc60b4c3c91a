package memfifo

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// receiver is what a domain notes while it takes messages. Domain.mu guards it.
type receiver struct {
	header       reliable.Header
	at           monotime.Time // when a frame was handled for which the time mattered
	needsPump    []*peer       // for which a message of this batch has made something possible
	flushPending []*peer       // that have acknowledgements, or a frame that is not full, waiting for more to share a frame
	drains       int           // how many callers are in drainReceive: they are about to send
	undrained    int           // frames sent since the last drainReceive
	dataCame     bool          // since then
}

// leave does what the messages that came together have made possible, behind the last of them. The first has locked mu.
func (d *Domain) leave() {
	d.pumpPeers()
	d.mu.Unlock()
}

// idle is when the endpoint has nothing more for now.
func (d *Domain) idle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.flushPeers()
	}
}

// handle takes a message.
func (d *Domain) handle(m *mcd.Message) {
	if d.closed {
		return
	}
	h := &d.rx.header
	if reliable.Parse(m.Payload, h) != nil {
		d.stats.Malformed++
		return
	}
	p := d.peer(m.From.Node)
	if p == nil {
		d.stats.UnknownNode++
		return
	}
	d.rx.dataCame = d.rx.dataCame || h.Kind == reliable.Data
	p.receive(h, m.Payload[reliable.HeaderLen:])
	if !p.needsPump && (p.conn.NeedsPump() || len(p.replies) > 0) {
		p.needsPump = true
		d.rx.needsPump = append(d.rx.needsPump, p)
	}
	p.flushLater()
}

// receive takes a frame of this peer. Most frames of a stream only go on, and need no look at the clock.
func (p *peer) receive(h *reliable.Header, records []byte) {
	rx, event := &p.d.rx, reliable.Deliver
	if !p.conn.Continues(h, len(records)) {
		rx.at = clock.Now()
		event = p.conn.Handle(rx.at, h, records)
	}
	p.heard = rx.at
	switch event {
	case reliable.Deliver:
		p.take(rx.at, h.Lane, records)
	case reliable.PeerRestarted:
		p.fail(&PeerDownError{Node: p.node, Reason: Restarted})
	case reliable.PeerClosed:
		p.fail(&PeerDownError{Node: p.node, Reason: Left})
	}
	p.completeAcked() // before the next message, which may be a goodbye
}

// pumpPeers does what the messages of a batch have made possible.
func (d *Domain) pumpPeers() {
	if len(d.rx.needsPump) == 0 {
		return
	}
	now := clock.Now()
	for _, p := range d.rx.needsPump {
		p.needsPump = false
		if !d.closed {
			p.advance(now)
		}
	}
	d.rx.needsPump = d.rx.needsPump[:0]
}

// flushLater has the peer flushed when the endpoint has nothing more for now.
func (p *peer) flushLater() {
	if !p.flushPending {
		p.flushPending = true
		p.d.rx.flushPending = append(p.d.rx.flushPending, p)
		p.d.port.WantIdle()
	}
}

// flushPeers sends what waits for more to share a frame, unless a caller is about to send.
func (d *Domain) flushPeers() {
	if d.rx.drains > 0 {
		d.port.WantIdle()
		return
	}
	if len(d.rx.flushPending) == 0 {
		return
	}
	now := clock.Now()
	peers := d.rx.flushPending
	d.rx.flushPending = nil
	for _, p := range peers {
		p.flushPending = false
		p.conn.Uncork(reliable.Requests)
		p.conn.Uncork(reliable.Replies)
		p.conn.SetAckPolicy(reliable.NoPiggyback)
		p.pump(now)
		p.conn.SetAckPolicy(reliable.MayPiggyback)
	}
	if d.rx.flushPending == nil {
		d.rx.flushPending = peers[:0]
	}
}
