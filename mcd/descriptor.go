package mcd

import (
	"context"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/list"
	"github.com/rawlane/rawlane/transport"
)

// SendDesc is a send descriptor: a message that is posted and sent when the link has room. Until it
// is done, descriptor and payload belong to the endpoint. A descriptor that is done may be posted
// again.
//
// Source: MCD §2.2.
type SendDesc struct {
	To      Dest
	Payload []byte
	NIC     int // the link to send it by

	completion Completion
	posted     atomic.Bool
	given      bool // it is in the PostSend under way
	port       *Port
	neighbour  *neighbour          // nil: for many
	node       list.Node[SendDesc] // in its lane; guarded by sendQueue.mu, as is sequence
	sequence   uint64
}

// Done reports whether the message was handed to the link, so that the payload may be changed, or
// failed.
func (d *SendDesc) Done() bool { return d.completion.Done() }

// Err returns nil if the message was handed to the link, and why not otherwise. Call it once Done
// is true.
func (d *SendDesc) Err() error { return d.completion.Err() }

// Wait blocks until the descriptor is done and returns Err, or until ctx ends. For one that was
// never posted there is nothing to wait for: Wait returns nil. One goroutine at a time waits for a
// descriptor.
func (d *SendDesc) Wait(ctx context.Context) error {
	if d.port == nil || d.Done() {
		return d.Err()
	}
	return d.port.e.Await(ctx, &d.completion)
}

// RecvDesc is a receive descriptor: a buffer posted for one message. Until it is done, descriptor
// and buffer belong to the endpoint. The results are valid then. A descriptor that is done may be
// posted again.
//
// Source: MCD §2.3.
type RecvDesc struct {
	Buf []byte

	// The results.
	N                     int // bytes of Buf that were filled
	From                  Addr
	To                    Dest
	NIC                   int
	transport.OptionalTag // as sent

	completion Completion
	port       *Port               // where it was posted last; nil: nowhere, or Recv has taken it back
	node       list.Node[RecvDesc] // among the port's posted ones; guarded by port.mu
}

// Done reports whether a message arrived, the port was closed, or Cancel has taken the descriptor
// back.
func (d *RecvDesc) Done() bool { return d.completion.Done() }

// Err returns nil, ErrClosed, context.Canceled, or a *ShortBufferError if the message did not fit.
// Call it once Done is true.
func (d *RecvDesc) Err() error { return d.completion.Err() }

// Wait blocks until the descriptor is done and returns Err. If ctx ends first, the descriptor stays
// posted: Cancel takes it back. For one that was never posted there is nothing to wait for: Wait
// returns nil. One goroutine at a time waits for a descriptor.
func (d *RecvDesc) Wait(ctx context.Context) error {
	if d.port == nil || d.Done() {
		return d.Err()
	}
	return d.port.e.Await(ctx, &d.completion)
}

// Cancel takes a posted descriptor back: it is done, with context.Canceled. It returns false if the
// descriptor is not posted (any more). A message may be on its way into one that was: wait until it
// is done before descriptor or buffer are used.
func (d *RecvDesc) Cancel() bool {
	if d.port == nil || !d.port.take(d) {
		return false
	}
	d.N = 0
	d.completion.Complete(context.Canceled)
	return true
}

// fill copies a message into the descriptor's buffer and returns the error to complete it with.
func (d *RecvDesc) fill(m *Message) error {
	d.N = copy(d.Buf, m.Payload)
	d.From, d.To, d.NIC, d.OptionalTag = m.From, m.To, m.NIC, m.OptionalTag
	if d.N < len(m.Payload) {
		return &ShortBufferError{Size: len(m.Payload), Len: len(d.Buf)}
	}
	return nil
}
