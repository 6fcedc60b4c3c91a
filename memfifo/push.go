package memfifo

import (
	"context"
	"fmt"
)

// Push appends a record to the remote FIFO. It returns when rec may be reused; a FIFO that is full
// holds up this node's further operations on its owner, and so in the end Push. Records of one node
// come in order, behind what it Put before.
//
// To a FIFO of this node itself, Push is TryPush. Errors as for Put, but the context does not end a
// Push that has begun to send a record of several frames; ErrTooLarge for a record of more than
// MaxRecord bytes; one that is longer than the FIFO takes (NewFIFO) is refused as OutOfRange, which
// Flush tells.
//
// Source: MBCF §2.2.
func (r *Remote) Push(ctx context.Context, rec []byte) error { return r.push(ctx, rec, false) }

// PushBatch appends records, which share frames. If it fails, those before the one that did are
// under way.
func (r *Remote) PushBatch(ctx context.Context, recs ...[]byte) error {
	for i, rec := range recs {
		if err := r.push(ctx, rec, i < len(recs)-1); err != nil {
			r.sendRest()
			return err
		}
	}
	return nil
}

func (r *Remote) push(ctx context.Context, rec []byte, more bool) error {
	if len(rec) > MaxRecord {
		return fmt.Errorf("push of %d bytes: %w (at most %d)", len(rec), ErrTooLarge, MaxRecord)
	}
	return r.send(ctx, &request{op: opPush, key: r.key, data: rec, total: len(rec)}, more)
}
