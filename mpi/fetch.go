package mpi

import (
	"errors"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// fetch reads the bytes of a message at its sender, in a goroutine of its own: the caller may poll,
// and holds mu.
func (w *World) fetch(r *Request, o *matching.Output) {
	from, id, e := w.all[o.To], o.Record.ID, o.Record.Envelope
	into := r.memory[:min(e.Size, len(r.memory))]
	if from == w.me {
		copy(into, w.engine.Requested(id).Owner.(*Request).memory)
	}
	if from == w.me || len(into) == 0 {
		w.queue(o.To, item{record: matching.Record{Kind: matching.Matched, ID: id}})
		w.received(r, o.To, &e)
		return
	}
	key := memfifo.Key{Node: from.ID, ID: o.Record.Memory.Window, Secret: o.Record.Memory.Secret}
	w.running.Go(func() { // until the sender has answered, is down, or the world ends
		err := w.layer.Domain.Remote(key).Get(w.ended, 0, into)
		w.mu.Lock()
		w.out = w.engine.Fetched(from.rank, id, w.out[:0])
		w.act()
		switch {
		case err == nil:
			w.received(r, from.rank, &e)
		case w.closed:
			w.complete(r, ErrClosed)
		case errors.Is(err, memfifo.ErrPeerDown):
			w.complete(r, &ProcessError{Rank: int(from.rank), Err: err})
		default:
			w.complete(r, ErrWithdrawn)
		}
		w.run()
	})
}
