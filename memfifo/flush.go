package memfifo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mcd"
)

// Flush waits for the remote completion of all that was done before to the given nodes, or to all
// without any: it is in place there, or was refused.
//
// Errors, joined: an *AccessError for each window or FIFO, of 64 of another node at most, of which
// something was refused since the last Flush; a *PeerDownError for each node to which something was
// lost; ctx's error with each that has not answered. Others: mcd.ErrUnknownNode, and then no node
// was asked; ErrClosed.
func (d *Domain) Flush(ctx context.Context, nodes ...mcd.NodeID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	peers, err := d.unflushed(nodes)
	if err != nil {
		return err
	}
	return d.flush(ctx, peers)
}

// flush is Flush of peers. The caller holds mu, which is given back meanwhile.
func (d *Domain) flush(ctx context.Context, peers []*peer) error {
	fences := make([]*workRequest, len(peers)) // nil: not asked
	errs := make([]error, len(peers))
	for i, p := range peers {
		if errs[i] = p.peerErr; errs[i] == nil { // else it is told here, even if another Flush tells it first
			fences[i] = p.post(&request{op: opFence})
		}
	}
	for i, p := range peers {
		if fences[i] != nil {
			errs[i] = d.waitUnlocked(ctx, fences[i])
		}
		errs[i] = p.flushResult(errs[i])
	}
	return errors.Join(errs...)
}

// waitUnlocked is wait without mu. The caller holds that, and does so again also if a handler that
// runs meanwhile does not return.
func (d *Domain) waitUnlocked(ctx context.Context, wr *workRequest) error {
	d.mu.Unlock()
	defer d.mu.Lock()
	_, err := d.wait(ctx, wr)
	return err
}

// unflushed returns those of the peers with the given node numbers, or of all without any, that
// have something to be flushed or told. The caller holds mu.
func (d *Domain) unflushed(nodes []mcd.NodeID) (peers []*peer, err error) {
	if d.closed {
		return nil, ErrClosed
	}
	all := d.peers
	if len(nodes) > 0 {
		all = nil
	}
	for _, node := range nodes {
		if int(node) < len(d.peers) && d.peers[node] != nil {
			if p := d.peers[node]; !slices.Contains(all, p) {
				all = append(all, p)
			}
		} else if !d.known(node) && node != d.ep.Node() {
			return nil, fmt.Errorf("flush of node %d: %w", node, mcd.ErrUnknownNode)
		}
	}
	for _, p := range all {
		if p != nil && (p.issued != p.confirmed || p.peerErr != nil || p.refused != nil || p.queue.Front() != nil) {
			peers = append(peers, p)
		}
	}
	return peers, nil
}

// forgetLoss has operations on a node go to its next incarnation. What the node has refused before
// is still told.
func (d *Domain) forgetLoss(node mcd.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.peers[node]; p != nil {
		p.peerErr = nil
	}
}

// flushResult returns what Flush says of this peer, and forgets it; err is its fence's.
func (p *peer) flushResult(err error) error {
	switch {
	case p.peerErr != nil:
		err = p.peerErr
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("node %d has not answered: %w", p.node, err)
	}
	p.peerErr = nil
	for _, refused := range p.refused {
		err = errors.Join(err, refused)
	}
	p.refused = nil
	return err
}
