package memfifo

import (
	"context"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// leave says goodbye to all peers, and waits until each has heard it, was told often enough, or the
// link has had no room for the peer timeout. Without that a peer whose goodbye is lost would wait
// for what it had under way until its own timeout. The caller holds mu, which is free meanwhile.
func (d *Domain) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.PeerTimeout)
	defer cancel()
	now := clock.Now()
	for _, p := range d.peers {
		if p != nil {
			p.pump(now)
		}
	}
	if d.leaves() {
		d.mu.Unlock()
		defer d.mu.Lock()
		_ = d.ep.Await(ctx, &d.left) // a closed endpoint says goodbye to nobody
	}
}

// leaves reports whether a peer is owed a goodbye.
func (d *Domain) leaves() bool {
	for _, p := range d.peers {
		if p != nil && p.conn.Closing() {
			return true
		}
	}
	return false
}

// receiveLeaving takes a batch of messages of a domain that is closed: goodbyes and their answers.
func (d *Domain) receiveLeaving(batch []mcd.Message) {
	now := clock.Now()
	h := &d.rx.header
	for i := range batch {
		from := int(batch[i].From.Node)
		if reliable.Parse(batch[i].Payload, h) != nil || from >= len(d.peers) || d.peers[from] == nil {
			continue
		}
		if h.Kind == reliable.Bye || h.Kind == reliable.ByeAck {
			d.peers[from].conn.Handle(now, h, nil)
			d.peers[from].pump(now)
		}
	}
	d.checkLeft()
}

// advanceLeaving does what is due for the goodbyes of a domain that is closed.
func (d *Domain) advanceLeaving(now monotime.Time) {
	for _, p := range d.peers {
		if p != nil {
			p.conn.Advance(now)
			p.pump(now)
		}
	}
	d.checkLeft()
}

func (d *Domain) checkLeft() {
	if !d.left.Done() && !d.leaves() {
		d.left.Complete(nil)
	}
}
