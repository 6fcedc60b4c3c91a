package memfifo

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// watch has the domain's one timer fire no later than at a peer's next deadline.
func (p *peer) watch(now monotime.Time) {
	at, ok := p.conn.Deadline()
	if soonest := now.Add(alarmSlack); ok && at.Before(soonest) {
		at = soonest
	}
	if retry := now.Add(busyRetry); p.linkBusy && (!ok || retry.Before(at)) {
		at, ok = retry, true
	}
	if probe, owes := p.probeDue(); owes && (!ok || probe.Before(at)) {
		at, ok = probe, true
	}
	if d := p.d; ok && (d.timerAt.IsZero() || at.Before(d.timerAt)) {
		d.timerAt = at
		d.timer.Reset(at.Sub(now))
	}
}

// onAlarm does what is due at each peer.
func (d *Domain) onAlarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timerAt = monotime.Time{}
	now := clock.Now()
	if d.closed {
		d.advanceLeaving(now)
		return
	}
	d.alarmFrom(0, now)
}

// alarmFrom does what is due at the peers from the k-th on, also where a handler ends the goroutine
// at one of them.
func (d *Domain) alarmFrom(k int, now monotime.Time) {
	defer func() {
		if k < len(d.peers) {
			defer d.alarmFrom(k+1, now)
			d.peers[k].sendQueued(now) // and so its deadline is watched
		}
	}()
	for ; k < len(d.peers); k++ {
		if p := d.peers[k]; p != nil {
			p.onAlarm(now)
		}
	}
}

func (p *peer) onAlarm(now monotime.Time) {
	if at, ok := p.conn.Deadline(); ok && !now.Before(at) {
		p.noteAcked()
		switch p.conn.Advance(now) {
		case reliable.PeerSilent:
			p.failUnheard(Silent)
		case reliable.DataLost:
			p.failUnheard(DataLost)
		}
		p.advance(now)
		return
	}
	if p.linkBusy {
		p.pump(now)
	}
	if at, ok := p.probeDue(); ok && !now.Before(at) {
		p.probe(now)
	}
	p.watch(now)
}

// failUnheard is fail of a peer that has not acknowledged what was sent, or what this node could
// not send.
func (p *peer) failUnheard(why Reason) {
	if p.notSent == nil {
		p.notSent = p.d.ep.LinkErr(0)
	}
	p.fail(&PeerDownError{Node: p.node, Reason: why, Timeout: p.d.cfg.PeerTimeout, NotSent: p.notSent})
	p.notSent = nil
}

// probeDue is when a peer that owes a reply, or is expected to send, is probed. While the
// connection has something under way it finds out by itself; but the peer may have acknowledged a
// request, and then died before it replied.
//
// A peer that lives replies to what it has acknowledged: a request is acknowledged when apply has
// done it, and its reply is then in the lane of replies, which nothing holds, or in peer.replies,
// which waits for room there. If the reply is dropped, as the peer has given us up, has left or has
// restarted, we hear of that when we probe.
func (p *peer) probeDue() (at monotime.Time, ok bool) {
	expected := p.expecting > 0 && p.senderDown == nil && !p.d.closed
	if len(p.pending) == 0 && !expected || !p.conn.AllAcked(reliable.Requests) {
		return at, false
	}
	return p.heard.Add(p.d.cfg.PeerTimeout / askParts), true
}

// probe sends a frame of no records: the connection finds out what becomes of it. Nothing else is
// in flight, so that the frame goes at once.
func (p *peer) probe(now monotime.Time) {
	p.noteAcked()
	p.conn.Reserve(reliable.Requests, 0)
	p.heard = now
	p.pump(now)
}
