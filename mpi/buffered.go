package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// A world that closes waits for the messages that Bsend has sent, as nobody else does: those that
// have no credit yet, or that their receivers have not read.

// drain waits until what Bsend has sent is received, for as long as some of it is in each
// Config.PeerTimeout.
func (w *World) drain() {
	for {
		left := w.buffered()
		if len(left) == 0 {
			return
		}
		for len(left) > 0 {
			if !w.drainOne(left) {
				return
			}
		}
	}
}

// buffered returns what Bsend has sent and is not received, by receiver, the last one first.
func (w *World) buffered() map[matching.Rank][]*Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := make(map[matching.Rank][]*Request)
	for r := w.active; r != nil; r = r.next {
		if r.detached {
			left[r.send.To] = append(left[r.send.To], r)
		}
	}
	return left
}

// drainOne waits until a receiver has taken the first message that is left for it, and forgets what
// was taken. It reports whether that is in time.
func (w *World) drainOne(left map[matching.Rank][]*Request) bool {
	var first []*Request
	for to, all := range left {
		n := len(all)
		for n > 0 && all[n-1].completion.Done() {
			n--
		}
		if n == 0 {
			delete(left, to)
		} else {
			left[to] = all[:n]
			first = append(first, all[n-1])
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.PeerTimeout)
	defer cancel()
	return awaitAny(ctx, first) == nil
}

// lostBuffered names the processes that have not received what Bsend has sent them.
func (w *World) lostBuffered() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for rank := range w.all {
		n, why := 0, error(nil)
		for _, r := range w.lost {
			if r.send.To == matching.Rank(rank) {
				n, why = n+1, r.completion.Err()
			}
		}
		if errors.Is(why, ErrClosed) {
			why = ErrWithdrawn
		}
		if n > 0 {
			errs = append(errs, fmt.Errorf("rank %d has not received %d buffered messages: %w", rank, n, why))
		}
	}
	return errors.Join(errs...)
}
