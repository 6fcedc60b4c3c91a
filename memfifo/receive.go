package memfifo

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// receiver is what a domain notes while it takes messages. Domain.mu guards it.
type receiver struct {
	header       reliable.Header
	at           monotime.Time // when the last batch was received, or nothing more
	needsPump    []*peer       // for which this batch, or Post, has made something possible
	flushPending []*peer       // with acknowledgements or a frame that is not full: they wait for more to share a frame
	corked       atomic.Bool   // these may have such a frame, to be flushed before a wait; read without mu
	drains       int           // how many callers are in drainReceive: they are about to send
	undrained    int           // frames sent since the last drainReceive
	dataCame     bool          // since then
}

// receive takes a batch of messages, and then does what they have made possible. Behind the last
// batch of a poll it sends what has waited for more to share a frame.
func (d *Domain) receive(batch []mcd.Message, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.receiveLeaving(batch)
		return
	}
	if len(batch)+len(d.rx.flushPending) > 0 {
		d.rx.at = clock.Now()
	}
	for i := range batch {
		d.handle(&batch[i])
	}
	d.pumpPeers(d.rx.at)
	if !more {
		d.flushPeers(d.rx.at, false)
	}
}

// handle takes a message.
func (d *Domain) handle(m *mcd.Message) {
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
	if p.conn.NeedsPump() || len(p.replies) > 0 {
		p.pumpLater()
	}
	p.flushLater()
	p.tellRefused()
}

// receive takes a frame of this peer.
func (p *peer) receive(h *reliable.Header, records []byte) {
	now := p.d.rx.at
	if p.conn.IsCurrent(h) { // hellos of its next life say nothing of this one
		p.heard = now
	}
	if h.Kind == reliable.Bye || h.Kind == reliable.HelloAck {
		p.noteAcked()
	}
	switch p.conn.Handle(now, h, records) {
	case reliable.Deliver:
		p.senderDown = nil
		p.take(h.Lane, records)
	case reliable.PeerRestarted:
		p.fail(&PeerDownError{Node: p.node, Reason: Restarted})
	case reliable.PeerClosed:
		p.fail(&PeerDownError{Node: p.node, Reason: Left})
	}
	p.completeAcked() // before the next message, which may be a goodbye
}

// pumpLater has pumpPeers advance the peer.
func (p *peer) pumpLater() {
	if !p.needsPump {
		p.needsPump = true
		p.d.rx.needsPump = append(p.d.rx.needsPump, p)
	}
}

// pumpPeers does what the messages of a batch, or the parcels of a Post, have made possible.
func (d *Domain) pumpPeers(now monotime.Time) {
	if d.closed {
		return // what was held up is not done any more
	}
	for i := 0; i < len(d.rx.needsPump); i++ { // a handler's answer to what was held up has a peer listed anew
		p := d.rx.needsPump[i]
		p.needsPump = false
		p.advance(now)
	}
	d.rx.needsPump = d.rx.needsPump[:0]
}

// flushLater has the peer flushed behind the last batch, or before a wait.
func (p *peer) flushLater() {
	if !p.flushPending {
		p.flushPending = true
		p.d.rx.flushPending = append(p.d.rx.flushPending, p)
	}
}

// flushPeers sends what waits for more to share a frame; but while a caller is in drainReceive,
// which is about to send more, it leaves that to the next wait or batch. waits says that a caller
// is about to wait.
func (d *Domain) flushPeers(now monotime.Time, waits bool) {
	d.rx.corked.Store(d.rx.drains > 0)
	if d.closed || d.rx.drains > 0 || len(d.rx.flushPending) == 0 {
		return
	}
	peers := d.rx.flushPending
	d.rx.flushPending = nil
	for _, p := range peers {
		p.flushPending = false
		p.flush(now, waits)
	}
	if d.rx.flushPending == nil {
		d.rx.flushPending = peers[:0]
	}
}

// flush sends to a peer what waits for more to share a frame: records, and acknowledgements. In
// trains, frames of a caller who goes on wait for the acknowledgement that lets them go.
func (p *peer) flush(now monotime.Time, waits bool) {
	goesOn := p.d.trains && !p.urgent && !waits
	if p.urgent = false; !goesOn {
		p.conn.Uncork(reliable.Requests)
	}
	p.conn.Uncork(reliable.Replies)
	p.conn.SetAckPolicy(reliable.NoPiggyback)
	if p.conn.NeedsPump() {
		p.pump(now)
	}
	p.conn.SetAckPolicy(reliable.MayPiggyback)
	if goesOn {
		p.keepCorked()
	}
}

// keepCorked has what is corked flushed behind the next batch, or before a wait.
func (p *peer) keepCorked() {
	if p.conn.Corked(reliable.Requests) || p.conn.Corked(reliable.Replies) {
		p.flushLater()
		if !p.d.rx.corked.Load() { // a load is cheaper than a store, and the frame is mostly corked already
			p.d.rx.corked.Store(true)
		}
	}
}

// drainReceive takes what has come, if much was sent since the last time and others send, too: else
// both ends of a connection would send until their windows are full, and then wait for each other.
// What it acknowledges to this peer goes with what is about to be sent. The caller holds d.mu,
// which is free meanwhile.
func (p *peer) drainReceive() {
	d := p.d
	if d.rx.undrained < sendBatch || !d.rx.dataCame {
		return
	}
	p.conn.SetAckPolicy(reliable.WillPiggyback)
	d.rx.undrained, d.rx.dataCame = 0, false
	d.rx.drains++
	d.mu.Unlock()
	defer func() { // also if a handler does not return
		d.mu.Lock()
		d.rx.drains--
		p.conn.SetAckPolicy(reliable.MayPiggyback)
		if p.ready() != nil {
			p.pump(clock.Now()) // nothing is about to be sent after all
		}
	}()
	for range drainPolls {
		if !d.ep.Progress() {
			break
		}
	}
}
