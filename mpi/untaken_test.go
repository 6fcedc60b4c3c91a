package mpi

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/consensus"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// floods has process 1 push a record again and again to a handler of process 0.
func floods(t *testing.T, to *memfifo.Remote, record []byte) {
	t.Helper()
	for range maxUntaken + 100 {
		if err := to.Push(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
}

// A process that asks again and again, and takes no answers, has few kept for it where it would ask
// again; else it is given up.
func TestQueue_IsBounded(t *testing.T) {
	ask := &wire.Multicast{Kind: wire.Ask, Context: 0xbeef00, Number: 1}
	state := &wire.Comm{Context: worldContext, Message: consensus.Message{Kind: consensus.State, Number: 1}}
	for name, c := range map[string]struct {
		record []byte
		most   int
		down   bool
	}{
		"of a multicast":  {wire.AppendMulticast(nil, ask), maxAnswers, false},
		"of an agreement": {wire.AppendComm(nil, state), maxUntaken + 2, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, other := openTwo(t, Config{})
			inBoth(t, func(c *Comm) error { _, err := c.Agree(t.Context(), 1); return err }, w, other)
			synctest.Wait()
			p := w.all[1]
			w.mu.Lock()
			p.busy = true // by a goroutine that waits for room there
			w.mu.Unlock()
			most := 0
			for range 2 {
				floods(t, other.all[0].To, c.record)
				w.mu.Lock()
				most = max(most, len(p.queue))
				w.mu.Unlock()
			}
			w.mu.Lock()
			if most > c.most || cap(p.queue) > 4*c.most || (p.err != nil) != c.down {
				t.Errorf("%s: %d are queued, want %d at most; %v", name, most, c.most, p.err)
			}
			if c.down && (len(p.queue) > 2 || !errors.Is(p.err, errUntaken)) {
				t.Errorf("%s: %d are queued for one that was given up: %v", name, len(p.queue), p.err)
			}
			p.busy = false
			w.begin(p)
			w.mu.Unlock()
			_, _ = other.Close(), w.Close() // one of them has given the other one up, maybe
		})
	}
}

// Answers of a window, which nobody asks for again, give a process up that takes none.
func TestQueue_OfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		wins := make([]*Win[uint64], 2)
		inBoth(t, func(c *Comm) (err error) {
			wins[c.Rank()], err = NewWin(t.Context(), c, make([]uint64, 1))
			return err
		}, w, other)
		m := wins[0].window.members[1]
		w.mu.Lock()
		m.busy = true // by a goroutine that waits for room there
		m.queue = append(m.queue, wire.AppendWindow(nil, &wire.WindowRecord{Kind: wire.Post, Context: wins[0].comm.context}))
		w.mu.Unlock()
		floods(t, wins[1].window.members[0].to, wire.AppendWindow(nil, &wire.WindowRecord{
			Kind: wire.CompareSwap, Context: wins[1].comm.context, ID: 1 << 20, Data: make([]byte, 16),
		}))
		w.mu.Lock()
		if n := len(m.queue); n > 0 || !errors.Is(w.all[1].err, errUntaken) {
			t.Errorf("%d are queued, %v", n, w.all[1].err)
		}
		m.busy = false
		w.mu.Unlock()
		_, _ = other.Close(), w.Close()
	})
}
