package mpi

import (
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A record about a communicator may come before this process has made it: another one has, and this
// one is about to. Such records are kept while a communicator is being made here.

// earlyRecord is one about a communicator that is not known.
type earlyRecord struct {
	from   matching.Rank
	record wire.Comm
}

// beginMaking says that a communicator is being made.
func (w *World) beginMaking() {
	w.mu.Lock()
	w.making++
	w.mu.Unlock()
}

// endMaking ends what beginMaking began. What was kept for no communicator that was made is
// dropped.
func (w *World) endMaking() {
	w.mu.Lock()
	if w.making--; w.making == 0 {
		w.early = nil
	}
	w.mu.Unlock()
}

// add makes a communicator known, and takes in what has come for it.
func (w *World) add(c *Comm) {
	w.mu.Lock()
	w.comms[c.context] = c
	w.early = slices.DeleteFunc(w.early, func(e earlyRecord) bool {
		if e.record.Context != c.context {
			return false
		}
		if w.all[e.from].err == nil && c.handle(e.from, &e.record) != nil {
			w.stats.Malformed++
		}
		return true
	})
	w.run()
}

// receiveComm takes a record about a communicator. The caller holds mu, and has what was queued
// carried out.
func (w *World) receiveComm(from matching.Rank, rec []byte) error {
	defer func() { w.out = w.out[:0] }() // was carried out
	e := earlyRecord{from: from}
	if err := wire.ParseComm(&e.record, rec); err != nil {
		return err
	}
	if c := w.comms[e.record.Context]; c != nil {
		return c.handle(from, &e.record)
	}
	if w.making == 0 || len(w.early) == maxEarly*len(w.all) {
		return wire.ErrMalformed
	}
	w.early = append(w.early, e)
	return nil
}

// handle takes in a record about the communicator. The caller holds World.mu.
func (c *Comm) handle(from matching.Rank, r *wire.Comm) error {
	k := c.rankOf(from)
	switch {
	case k < 0:
		return wire.ErrMalformed
	case r.Revoke:
		c.revoke()
		return nil
	}
	out, err := c.consensus().Handle(k, &r.Message, nil)
	c.settle(out)
	return err
}
