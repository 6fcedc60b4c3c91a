package memfifo

import (
	"errors"

	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/internal/list"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
	"github.com/rawlane/rawlane/transport"
)

// peer is another node: what is under way to it and from it. Domain.mu guards it.
type peer struct {
	d    *Domain
	node mcd.NodeID
	to   mcd.Dest
	conn *reliable.Conn

	queue   list.List[workRequest]  // work requests that are not all in frames
	left    int                     // how many of these are of calls that may have returned
	turnAt  monotime.Time           // when its last turn was, less the time that it left unused
	woken   int                     // how many of it went on in that turn
	came    int                     // how many calls have come to it since
	passed  int                     // how many have gone ahead of it since
	unacked list.List[workRequest]  // parcels in frames that are not acknowledged
	parcels int                     // in queue or unacked
	posts   int                     // posted puts in queue
	pending map[uint32]*workRequest // in frames, and waiting for a reply; by request ID
	putTo   cursor                  // where our last put to it ended

	issued     uint64         // parts in frames for which there is no reply
	confirmed  uint64         // how many of these a fence has found in place
	acked      uint64         // how many of these were acknowledged when the last fence went
	writtenOff bool           // Close does not wait for it
	peerErr    error          // what was under way is lost; until Flush says so
	refused    []*AccessError // since the last Flush, by id
	untold     []*AccessError // those that this message has told of, and Config.Refused has not heard

	replies     []reply // to it, waiting for room
	partial     []byte  // of a record that it pushes in parts
	putFrom     cursor  // where its last put to us ended
	partRefused Refusal // why a part of the record that it pushes was refused; or 0
	heldBy      *FIFO   // its requests wait for room there; else, if they are held, until replies have gone

	expecting  int            // how many FIFOs and windows expect it as a sender
	senderDown *PeerDownError // if they do: it is down

	heard        monotime.Time // when it has sent something of this connection last, or was probed
	linkBusy     bool          // the link had no room
	inLine       *mcd.SendDesc // a frame that waits for room among others' messages; nil: there was none yet
	notSent      error         // why the last frames could not be sent; nil: they were, or there was no room
	needsPump    bool          // it is in the receiver's list of that name
	flushPending bool          // likewise
	urgent       bool          // a handler has posted to it: no caller waits who would flush that
}

func newPeer(d *Domain, node mcd.NodeID) *peer {
	to := mcd.To(mcd.Addr{Node: node, Port: d.cfg.Port})
	p := &peer{d: d, node: node, to: to, pending: map[uint32]*workRequest{}}
	p.conn = reliable.New(reliable.Config{
		Incarnation: incarnation.New(), PeerTimeout: d.cfg.PeerTimeout,
		FrameSize: d.frameSize, SendSize: d.sendSize, Train: d.ep.TrainFrames(),
		Headroom: d.ep.Headroom(), Alloc: d.pool.frames.Alloc, Free: d.pool.frames.Free,
		Counters: &d.stats.Counters,
	})
	p.conn.SetAckPolicy(reliable.MayPiggyback)
	return p
}

// ready says why nothing can be done to the peer now, or nil.
func (p *peer) ready() error {
	if p.d.closed {
		return ErrClosed
	}
	select {
	case <-p.d.ep.Done(): // nothing is sent any more, nor heard
		return ErrClosed
	default:
	}
	return p.peerErr
}

// pump sends the frames that the connection lets go. One that is refused twice gets into line.
func (p *peer) pump(now monotime.Time) {
	refused := p.linkBusy
	p.linkBusy = false
	for more := true; more && !p.linkBusy; more = p.conn.NeedsPump() {
		n := p.conn.NextBatch(now, &p.d.batch)
		if n == 0 {
			break
		}
		p.d.rx.undrained += n
		sent, err := p.d.port.TrySendInPlace(0, p.to, p.d.batch[:n]...)
		switch {
		case sent == n:
			p.notSent, refused = nil, false
		case errors.Is(err, transport.ErrBusy):
			p.linkBusy = true
			if sent == 0 && refused && p.getInLine(p.d.batch[0]) {
				sent = 1
			}
			p.conn.Refused(sent, n)
		default: // these are lost, as frames are
			p.notSent = err
		}
	}
	p.keepCorked()
	p.watch(now)
}

// getInLine posts a copy of a frame, unless one waits already, and reports whether it did. Where
// others have more for the link than it takes, what is only tried would be refused for ever.
func (p *peer) getInLine(frame []byte) bool {
	d := p.inLine
	switch {
	case d == nil:
		d = &mcd.SendDesc{To: p.to}
	case !d.Done():
		return false
	}
	d.Payload = append(d.Payload[:0], frame[p.d.ep.Headroom():]...)
	p.inLine = nil
	if p.d.port.PostSend(d) != nil {
		return false
	}
	p.inLine = d
	return true
}

// advance does what an acknowledgement or a deadline has made possible.
func (p *peer) advance(now monotime.Time) {
	p.sendReplies()
	if p.heldBy == nil && len(p.replies) < maxReplies/2 {
		p.resume()
	}
	p.sendQueued(now)
}

// resume takes the requests that were held up, if any were.
func (p *peer) resume() {
	if records, ok := p.conn.Buffered(reliable.Requests); ok {
		p.take(reliable.Requests, records)
	}
}

// completeAcked completes the parcels that were acknowledged.
func (p *peer) completeAcked() {
	for wr := p.unacked.Front(); wr != nil && p.conn.Acked(reliable.Requests, wr.mark); wr = p.unacked.Front() {
		p.unacked.PopFront().complete(nil)
		p.parcels--
	}
}

// fail ends what is under way, as it may be lost.
func (p *peer) fail(err error) {
	lost := p.issued != p.confirmed // other callers hear of it from what they wait for
	p.confirmed = p.issued
	if down, ok := err.(*PeerDownError); ok { //nolint:errorlint // the very value, before anybody has it
		down.Lost = lost && p.acked != p.issued || p.queue.Front() != nil
	}
	for wr := p.queue.Front(); wr != nil; wr = p.queue.Front() {
		p.dequeue(wr)
		lost = lost || wr.isParcel()
		wr.complete(err)
	}
	for wr := p.unacked.PopFront(); wr != nil; wr = p.unacked.PopFront() {
		wr.complete(err)
	}
	for id, wr := range p.pending {
		delete(p.pending, id)
		wr.complete(err)
	}
	p.parcels = 0
	p.dropPartial()
	p.replies = nil
	p.putTo, p.putFrom = cursor{}, cursor{}
	if lost && p.peerErr == nil {
		p.peerErr = err
	}
	defer p.setDown(err) // also if a handler of the sender whose turn it is then does not return
	if f := p.heldBy; f != nil {
		f.unhold(p)
	}
}
