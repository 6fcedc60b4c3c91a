package mpi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// After 2^32 Bcasts of a root a Close sends what was lost, as it does before.
func TestMulticast_Wrap(t *testing.T) {
	for name, base := range map[string]uint32{"apart": 1 << 20, "wraps": 0xfffffff0, "to 0": 0xfffffff0} {
		t.Run(name, func(t *testing.T) {
			count := 18
			if name == "to 0" {
				count = 16
			}
			synctest.Test(t, func(t *testing.T) {
				eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
				worlds := openEach(t, eps, Config{Algorithms: []Algorithm{{Operation: "bcast", Name: byMulticast}}})
				root, c := worlds[0].Comm(), worlds[1].Comm()
				root.w.mu.Lock()
				m := root.multicastState()
				m.root.begun, m.root.listeners[1].has, m.root.listeners[1].met = base, base, true
				root.w.mu.Unlock()
				c.w.mu.Lock()
				s := c.multicastState().source(0, 0) // nothing of it was heard: its incarnation is not known
				s.begun, s.ended = base, base
				c.w.mu.Unlock()
				for k := range count {
					if err := Bcast(t.Context(), root, []int{k}, 0); err != nil {
						t.Error(err)
					}
				}
				if err := worlds[0].Close(); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
				for k := range count {
					b := []int{-1}
					if err := Bcast(t.Context(), c, b, 0); err != nil || b[0] != k {
						t.Errorf("Bcast %d: %d, %v", k, b[0], err)
						break
					}
				}
				_ = worlds[1].Close()
			})
		})
	}
}

// A frame that comes behind its record, once or twice, was late and not lost.
func TestSource_Late(t *testing.T) {
	s := &source{begun: 5}
	for number := uint32(1); number <= 3; number++ {
		s.take(&wire.Multicast{Number: number}, true)
	}
	if s.missed != 2 { // the first always comes as a record
		t.Errorf("%d missed, want 2", s.missed)
	}
	for range 2 {
		s.take(&wire.Multicast{Number: 2}, false)
	}
	if s.end(1); s.missed != 1 {
		t.Errorf("%d missed, want 1", s.missed)
	}
	if s.end(2); s.end(3) || s.ended != 3 {
		t.Errorf("up to %d have returned", s.ended)
	}
	if s.take(&wire.Multicast{Number: 3}, false); s.missed != 0 { // also behind its Bcast's return
		t.Errorf("%d missed, want 0", s.missed)
	}
}

// After 2^32 multicasts by each all have what all have told.
func TestShare_Wrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{Algorithms: []Algorithm{{Operation: "allreduce", Name: byEach}}})
		const base = 1<<32 - 3
		for k, w := range []*World{w, other} {
			w.mu.Lock()
			m := w.comm.multicastState()
			m.root.begun, m.root.listeners[1-k].has, m.root.listeners[1-k].met = base, base, true
			s := m.source(1-k, w.comm.members[1-k])
			s.begun, s.ended = base, base
			w.mu.Unlock()
		}
		inBoth(t, func(c *Comm) error {
			for k := range 40 {
				sum := []int{0}
				err := Allreduce(t.Context(), c, []int{k + c.Rank()}, sum, Sum)
				if err != nil || sum[0] != 2*k+1 {
					return fmt.Errorf("rank %d, %d: %d, %w", c.Rank(), k, sum[0], err)
				}
			}
			return nil
		}, w, other)
		closeTwo(t, w, other)
	})
}

// A process to which nothing comes as a frame is found deaf, also after 2^31 multicasts that it has
// heard.
func TestRoot_DeafAfterMany(t *testing.T) {
	m := multicasts{root: root{listeners: make([]listener, 1)}}
	tell := func(number uint32, missed uint16) bool {
		t.Helper()
		m.hear(0, &wire.Multicast{Kind: wire.Have, Number: number, Missed: missed})
		return m.root.listeners[0].deaf
	}
	const step = 1 << 20
	number := uint32(0)
	for range 1<<31/step + 1 {
		if number += step; tell(number, 0) {
			t.Fatalf("deaf at %d", number)
		}
	}
	if !tell(number+multicastAck, multicastAck) {
		t.Error("not found deaf")
	}
}
