package mpi

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport/fault"
)

// Messages that are being written, one after the other, as their receiver does not answer any more or
// the world is closed: each send ends with what has become of it, its memory is its caller's, and
// the one that has begun is delivered if the receiver answers.
func TestWrite_ThatIsUnderWay(t *testing.T) {
	const messages, size = 3, 1 << 20 // longer than a window of frames
	for name, test := range map[string]struct {
		end  func(t *testing.T, sender *World, link *fault.Link)
		want error
		sent int // of the messages; the others are lost
	}{
		"the receiver does not answer": {func(*testing.T, *World, *fault.Link) {}, ErrProcessFailed, 0},
		"the world is closed, and the receiver answers": {func(t *testing.T, w *World, link *fault.Link) {
			link.Cut(false)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}, ErrClosed, 1},
		"the world is closed, and the receiver does not answer": {func(t *testing.T, w *World, _ *fault.Link) {
			if err := w.Close(); err == nil {
				t.Error("Close names nobody")
			}
		}, ErrClosed, 0},
		"the endpoint is closed": {func(t *testing.T, w *World, _ *fault.Link) {
			if err := w.ep.Close(); err != nil {
				t.Error(err)
			}
			before := time.Now()
			if err := Send(t.Context(), w.Comm(), []byte{1}, 1, 0); !errors.Is(err, ErrClosed) || time.Since(before) > 0 {
				t.Errorf("a send: %v, after %v", err, time.Since(before))
			}
		}, ErrClosed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
				var receives, sends []*Request
				got := make([]byte, messages*size)
				for k := range messages {
					receives = append(receives, Irecv(d[1], got[k*size:][:size], 0, 0))
				}
				synctest.Wait()
				links[1].Cut(true)
				for k := range messages {
					sends = append(sends, Isend(d[0], bytes.Repeat([]byte{byte(k + 1)}, size), 1, 0))
				}
				synctest.Wait()
				for k, s := range sends {
					if _, done, err := s.Test(); done {
						t.Fatalf("message %d is sent, and nothing acknowledged: %v", k, err)
					}
				}
				test.end(t, worlds[0], links[1])
				for k, s := range sends {
					if _, err := s.Wait(t.Context()); !errors.Is(err, test.want) {
						t.Errorf("send %d: %v, want %v", k, err, test.want)
					}
					if n := s.queued.Load(); n != 0 {
						t.Errorf("send %d is over, and its memory used: %d", k, n)
					}
				}
				if err := Send(t.Context(), d[0], []byte{1}, 1, 0); !errors.Is(err, test.want) {
					t.Errorf("the next send: %v, want %v", err, test.want)
				}
				links[1].Cut(false)
				for k, r := range receives {
					_, err := r.Wait(t.Context())
					ok := err == nil && bytes.Equal(got[k*size:][:size], bytes.Repeat([]byte{byte(k + 1)}, size))
					if ok != (k < test.sent) {
						t.Errorf("receive %d: %v; has its message: %v", k, err, ok)
					}
				}
			})
		})
	}
}

// Of messages that are written, one after the other, no more than one is ahead of what else goes to
// their receiver, as the request of a message that is read there.
func TestWrite_OthersGoBetween(t *testing.T) {
	const messages, size = 60, 1 << 20
	delay := fault.Config{Delay: 1, DelayMin: 10 * time.Millisecond, DelayMax: 10 * time.Millisecond}
	freeing(t, 2, delay, func(t *testing.T, _ []*World, _ []*fault.Link, d []*Comm) {
		var receives, sends []*Request
		for range messages {
			receives = append(receives, Irecv(d[1], make([]byte, size), 0, 0))
		}
		back := Isend(d[1], make([]byte, size/10), 0, 1)
		time.Sleep(time.Second)
		begun, data := time.Now(), make([]byte, size)
		for range messages {
			sends = append(sends, Isend(d[0], data, 1, 0))
		}
		if _, err := Recv(t.Context(), d[0], data[:size/10], 1, 1); err != nil {
			t.Error(err)
		}
		received := time.Since(begun)
		if err := WaitAll(t.Context(), append(append(receives, sends...), back)...); err != nil {
			t.Error(err)
		}
		if all := time.Since(begun); received > all/10 {
			t.Errorf("a message is read after %v, and all are written after %v", received, all)
		}
	})
}
