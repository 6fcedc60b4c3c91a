package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// fetch reads the bytes of a message at its sender, in a goroutine of its own: the caller may poll,
// and holds mu.
func (w *World) fetch(r *Request, o *matching.Output) {
	from, id, e := w.all[o.To], o.Record.ID, o.Record.Envelope
	into := r.memory[:min(e.Size, len(r.memory))]
	switch {
	case from == w.me:
		s := w.engine.Requested(id)
		if s != nil && !s.Owner.(*Request).withdrawn {
			copy(into, s.Owner.(*Request).memory)
			w.received(r, o.To, &e)
		} else {
			w.complete(r, ErrWithdrawn)
		}
	case len(into) == 0:
		w.received(r, o.To, &e)
	default:
		key := memfifo.Key{Node: from.ID, ID: o.Record.Memory.Window, Secret: o.Record.Memory.Secret}
		r.queued.Add(1)       // nobody else uses the memory before that is over
		w.running.Go(func() { // until the sender has answered, is down, or the world closes
			err := errUnreturned
			defer func() {
				w.mu.Lock()
				w.fetched(r, from, &e, err)
				w.out = w.engine.Fetched(from.rank, id, w.out[:0])
				w.act()
				r.queued.Add(-1)
				w.idle.Broadcast()
				w.run()
			}()
			err = w.get(into, w.layer.Domain.Remote(key))
		})
		return
	}
	w.queue(o.To, item{record: matching.Record{Kind: matching.Matched, ID: id}})
}

// maxGet is how much is read at a time.
const maxGet = 1 << 30

// get reads all of a window.
func (w *World) get(into []byte, from *memfifo.Remote) error {
	for at := 0; at < len(into); at += maxGet {
		if err := from.Get(w.fetching, int64(at), into[at:min(at+maxGet, len(into))]); err != nil {
			return err
		}
	}
	return nil
}

// fetched completes a receive whose bytes were read, or could not be. The caller holds mu.
func (w *World) fetched(r *Request, from *process, e *matching.Envelope, err error) {
	switch {
	case err == nil:
		w.received(r, from.rank, e)
	case w.closed, errors.Is(err, context.Canceled), errors.Is(err, memfifo.ErrClosed):
		w.complete(r, ErrClosed)
	case errors.Is(err, memfifo.ErrPeerDown):
		w.complete(r, &ProcessError{Rank: int(from.rank), Err: err})
	case errors.Is(err, memfifo.ErrAccess):
		w.complete(r, fmt.Errorf("rank %d: %w", r.comm.rankOf(from.rank), ErrWithdrawn))
	default:
		w.complete(r, err)
	}
}
