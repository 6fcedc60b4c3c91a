package memfifo

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Get copies bytes of the remote window, from offset off on, into p. Errors: ErrAccess,
// ErrPeerDown, mcd.ErrUnknownNode, ErrClosed, the context's; then p holds anything.
func (r *Remote) Get(ctx context.Context, off int64, p []byte) error {
	if len(p) > math.MaxInt32 {
		return fmt.Errorf("get of %d bytes: %w (at most %d)", len(p), ErrTooLarge, math.MaxInt32)
	}
	_, err := r.execute(ctx, off, &request{op: opGet, buf: p}, false)
	return err
}

// ReadAt is Get, for io.ReaderAt: no context ends it.
func (r *Remote) ReadAt(p []byte, off int64) (n int, err error) {
	if err := r.Get(context.Background(), off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FetchAdd adds delta to the word of 8 bytes at offset off, and returns what it was before. Words
// are the owner's uint64 in memory; all nodes must have one byte order. Errors: as for Get;
// ErrAccess, too, if off is not a multiple of 8.
func (r *Remote) FetchAdd(ctx context.Context, off int64, delta uint64) (old uint64, err error) {
	return r.execute(ctx, off, &request{op: opFetchAdd, operand: delta}, false)
}

// Swap writes v to the word at offset off, and returns what it was before. Errors as for FetchAdd.
func (r *Remote) Swap(ctx context.Context, off int64, v uint64) (old uint64, err error) {
	return r.execute(ctx, off, &request{op: opSwap, operand: v}, false)
}

// CompareSwap writes v to the word at offset off if expected is there, and returns what was there
// before: if old is expected, v is there now. Errors as for FetchAdd.
func (r *Remote) CompareSwap(ctx context.Context, off int64, expected, v uint64) (old uint64, err error) {
	return r.execute(ctx, off, &request{op: opCompareSwap, operand: v, expected: expected}, false)
}

// TryPush is Push that does not wait for room in the FIFO: it returns ErrFull if there is none. The
// record has to fit a frame (ErrTooLarge); a refusal comes back at once (ErrAccess).
func (r *Remote) TryPush(ctx context.Context, rec []byte) error {
	if most := r.d.frameSize - reliable.HeaderLen - opTryPush.Size(0); len(rec) > most {
		return fmt.Errorf("try to push %d bytes: %w (at most %d)", len(rec), ErrTooLarge, most)
	}
	_, err := r.execute(ctx, 0, &request{op: opTryPush, data: rec}, false)
	return err
}

// wait waits for the completion of a work request that its caller has posted, and takes it back:
// the remote one if there is a reply, else the local one. The caller does not hold d.mu, which is
// needed only if the context ends first.
func (d *Domain) wait(ctx context.Context, wr *workRequest) (value uint64, err error) {
	c := wr.awaited()
	returned := false
	defer func() {
		if !returned { // a handler that runs here panics, or ends the goroutine
			d.mu.Lock()
			defer d.mu.Unlock()
			wr.peer.abandon(wr)
		}
	}()
	err = d.await(ctx, c)
	returned = true
	if !c.Done() {
		var kept bool
		if kept, err = d.giveUp(wr, err); kept {
			return 0, nil
		}
	}
	if c.Done() {
		value, err = wr.value, c.Err()
	}
	d.freeRequest(wr)
	return value, err
}

// giveUp is peer.giveUp where the caller does not hold mu.
func (d *Domain) giveUp(wr *workRequest, err error) (kept bool, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return wr.peer.giveUp(wr, err)
}

// abandon takes a work request back whose caller waits no more, and is to have its memory again.
func (p *peer) abandon(wr *workRequest) {
	if kept, _ := p.giveUp(wr, nil); !kept {
		p.d.freeRequest(wr)
	}
}

// giveUp ends the wait for a work request with an error. If a push has begun, its record has to be
// completed, or no other could follow: then it is kept, and there is no error.
func (p *peer) giveUp(wr *workRequest, err error) (kept bool, _ error) {
	switch {
	case wr.awaited().Done():
	case wr.state == framed:
		delete(p.pending, wr.requestID) // a reply that comes later is an orphan
		p.issued++                      // the next Flush tells what has become of it
	case wr.isPartOfRecord() && !errors.Is(err, ErrClosed):
		wr.detach()
		return true, nil
	default:
		p.withdraw(wr)
	}
	return false, err
}
