package mpi

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Records that make no sense are counted, by cause, and change nothing.
func TestReceive_WhatMakesNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		var worlds []*World
		for k, nodes := range [][]mcd.NodeID{{0, 1}, {0, 1}, {0, 2}} { // the third is none of the first one's
			w, err := Open(eps[k], Config{Nodes: nodes})
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
		}
		eager := wire.Append(nil, &matching.Record{Kind: matching.Eager})
		matched := wire.Append(nil, &matching.Record{Kind: matching.Matched, ID: 9})
		for _, c := range []struct {
			name   string
			from   int
			record []byte
			want   Counters
		}{
			{"no kind", 1, make([]byte, 12), Counters{Version: 1}},
			{"another version", 1, append([]byte{0x31}, eager[1:]...), Counters{Version: 2}},
			{"no record", 1, eager[:5], Counters{Version: 2, Malformed: 1}},
			{"Matched of no send", 1, matched, Counters{Version: 2, Malformed: 2}},
			{"of a node that is no process", 2, eager, Counters{Version: 2, Malformed: 3}},
		} {
			if err := worlds[c.from].all[0].To.Push(t.Context(), c.record); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := worlds[0].Counters()
			if got.Frames == (memfifo.Counters{}) {
				t.Error("no frames are counted")
			}
			if got.Frames = c.want.Frames; got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		}
		if s, found, err := worlds[0].Comm().Iprobe(AnySource, AnyTag); found || err != nil {
			t.Errorf("a message is found: %+v, %v", s, err)
		}
		var errs []error
		for _, w := range worlds {
			errs = append(errs, w.Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
}

// What goes to a process whose node the endpoint does not know any more fails, and names it.
func TestCarryOut_ToAnUnknownNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		w, err := Open(eps[0], Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := eps[0].SetNodes(eps[0].Nodes()[:1]); err != nil {
			t.Fatal(err)
		}
		var down *ProcessError
		_, err = Recv(t.Context(), w.Comm(), make([]byte, 100_000), 1, 0) // it is offered
		if !errors.As(err, &down) || down.Rank != 1 || !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("%v, want that rank 1 is not known", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A process that cannot carry out what another one waits for, for a reason of its own, gives that one
// up, and tells it so: its waits end.
func TestCarryOut_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := Irecv(other.Comm(), make([]byte, 1), 0, 1)
		taken, err := w.layer.Domain.Register(w.spare.made+1, nil, 0) // the number of the next window
		if err != nil {
			t.Fatal(err)
		}
		if err := Send(ctx, w.Comm(), make([]byte, 1<<20), 1, 0); !errors.Is(err, memfifo.ErrTaken) {
			t.Errorf("a message whose memory cannot be lent: %v, want %v", err, memfifo.ErrTaken)
		}
		if _, err := r.Wait(ctx); !errors.Is(err, errGone) {
			t.Errorf("a receive from who has given its process up: %v, want %v", err, errGone)
		}
		taken.Revoke()
		closeTwo(t, w, other)
	})
}

// Messages that just fit a frame with their record, and that just do not, arrive, whether the record has an
// id or none.
func TestSend_AtAFramesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		for size := w.frame - 24; size <= w.frame+1; size++ {
			for tag, send := range []func(context.Context, *Comm, []byte, int, int) error{Send[byte], Ssend[byte]} {
				sent := make(chan error)
				go func() { sent <- send(t.Context(), w.Comm(), bytes.Repeat([]byte{7}, size), 1, tag) }()
				buf := make([]byte, size+1)
				s, err := Recv(t.Context(), other.Comm(), buf, 0, tag)
				whole := bytes.Equal(buf, append(bytes.Repeat([]byte{7}, size), 0))
				if err = errors.Join(err, <-sent); err != nil || s.Bytes() != size || !whole {
					t.Fatalf("%d bytes, tag %d: %+v, %v", size, tag, s, err)
				}
			}
		}
		closeTwo(t, w, other)
	})
}

// A process fails once, with the first reason, and no process fails where a node goes that is none.
func TestFail_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		w.down(&memfifo.PeerDownError{Node: 7})
		for _, p := range w.all {
			if p.err != nil {
				t.Errorf("rank %d: %v", p.rank, p.err)
			}
		}
		w.down(&memfifo.PeerDownError{Node: 1})
		first := w.all[1].err
		w.down(&memfifo.PeerDownError{Node: 1, Reason: memfifo.Silent})
		if first == nil || !errors.Is(w.all[1].err, first) || w.all[0].err != nil {
			t.Errorf("%v, then %v; rank 0: %v", first, w.all[1].err, w.all[0].err)
		}
		_ = errors.Join(w.Close(), other.Close()) // the other one is not answered any more
	})
}
