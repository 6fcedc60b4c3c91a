package mpi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// openDirect opens worlds that offer all receives.
func openDirect(t *testing.T, n int) []*World {
	t.Helper()
	eps := mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	return openEach(t, eps, Config{OfferFrom: 1, EagerLimit: MaxEagerLimit, PeerTimeout: time.Second})
}

// inEach calls a function in each process, and waits for all.
func inEach(worlds []*World, f func(c *Comm)) {
	done := make(chan struct{})
	for _, w := range worlds {
		go func() { f(w.Comm()); done <- struct{}{} }()
	}
	for range worlds {
		<-done
	}
}

// Where all receives are offered, collective operations write into them whichever end is first.
func TestDirect_WritesAll(t *testing.T) {
	for name, f := range map[string]func(c *Comm, data, all []byte) error{
		"alltoall": func(c *Comm, data, all []byte) error { return Alltoall(context.Background(), c, data, all) },
		"allgather": func(c *Comm, data, all []byte) error {
			return Allgather(context.Background(), c, data[:5000], all[:20_000])
		},
		"bcast":  func(c *Comm, data, _ []byte) error { return Bcast(context.Background(), c, data, 1) },
		"reduce": func(c *Comm, data, all []byte) error { return Reduce(context.Background(), c, data, all, Sum[byte], 2) },
		"gather": func(c *Comm, data, all []byte) error {
			return Gather(context.Background(), c, data[:5000], all[:20_000], 3)
		},
		"allreduce": func(c *Comm, data, all []byte) error { return Allreduce(context.Background(), c, data, all, Sum[byte]) },
	} {
		synctest.Test(t, func(t *testing.T) {
			worlds := openDirect(t, 4)
			inEach(worlds, func(c *Comm) {
				for round := range 8 { // each is the last one, and the first
					time.Sleep(time.Duration((c.Rank()+round)%4) * time.Millisecond)
					if err := f(c, make([]byte, 40_000), make([]byte, 40_000)); err != nil {
						t.Errorf("%s: rank %d: %v", name, c.Rank(), err)
					}
				}
			})
			for rank, w := range worlds {
				if n := w.Counters(); n.WrittenBytes != n.SentBytes {
					t.Errorf("%s: rank %d has written %d of %d bytes", name, rank, n.WrittenBytes, n.SentBytes)
				}
			}
			for _, w := range worlds {
				go func() { _ = w.Close() }()
			}
		})
	}
}

// An operation whose receives are not offered, as too many others are, goes on in bounded time; the
// next one does not wait for offers, and one behind it does again once some come.
func TestDirect_NothingIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds := openDirect(t, 2)
		var others []*Request
		for range 64 {
			others = append(others, Irecv(worlds[0].Comm(), make([]byte, 100), 1, 7))
		}
		took := func() time.Duration {
			start := time.Now()
			inEach(worlds, func(c *Comm) {
				time.Sleep(time.Duration(c.Rank()) * time.Millisecond)
				if err := Alltoall(t.Context(), c, make([]byte, 2000), make([]byte, 2000)); err != nil {
					t.Errorf("rank %d: %v", c.Rank(), err)
				}
			})
			return time.Since(start)
		}
		if d := took(); d < offerPause || d > 3*offerPause {
			t.Errorf("the first took %v", d)
		}
		if d := took(); d > offerPause/2 {
			t.Errorf("the second took %v", d)
		}
		for range others {
			if err := Send(t.Context(), worlds[1].Comm(), make([]byte, 100), 0, 7); err != nil {
				t.Fatal(err)
			}
		}
		if err := WaitAll(t.Context(), others...); err != nil {
			t.Error(err)
		}
		took()
		before := worlds[1].Counters()
		took()
		if n := worlds[1].Counters(); n.WrittenBytes-before.WrittenBytes != 1000 {
			t.Errorf("it has written %d bytes, want 1000", n.WrittenBytes-before.WrittenBytes)
		}
		closeTwo(t, worlds[0], worlds[1])
	})
}

// A send that waits for an offer ends with its context, its communicator, its receiver and its world.
func TestDirect_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(worlds []*World, cancel func())
		want error
	}{
		"context":  {func(_ []*World, cancel func()) { cancel() }, context.Canceled},
		"revoked":  {func(worlds []*World, _ func()) { worlds[1].Comm().Revoke() }, ErrRevoked},
		"receiver": {func(worlds []*World, _ func()) { _ = worlds[1].Close() }, ErrProcessFailed},
		"world":    {func(worlds []*World, _ func()) { _ = worlds[0].Close() }, ErrClosed},
		"left": {func(worlds []*World, _ func()) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = Reduce(ctx, worlds[1].Comm(), make([]byte, 100), make([]byte, 100), Sum[byte], 1)
		}, ErrWithdrawn},
	} {
		synctest.Test(t, func(t *testing.T) {
			worlds := openDirect(t, 2)
			inEach(worlds, func(c *Comm) { // they know each other
				if _, err := Sendrecv(t.Context(), c, []byte{1}, 1-c.Rank(), 0, []byte{0}, 1-c.Rank(), 0); err != nil {
					t.Error(err)
				}
			})
			before := worlds[0].Counters()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error)
			go func() {
				failed <- Gather(ctx, worlds[0].Comm(), make([]byte, 100), nil, 1)
			}()
			synctest.Wait()
			if n := worlds[0].Counters(); n.Eager+n.Written+n.Requested != before.Eager+before.Written {
				t.Errorf("%s: it has not waited: %+v", name, n)
			}
			go c.end(worlds, cancel)
			start := time.Now()
			if err := <-failed; !errors.Is(err, c.want) || time.Since(start) > offerPause/2 {
				t.Errorf("%s: after %v: %v", name, time.Since(start), err)
			}
			_ = worlds[0].Close()
			_ = worlds[1].Close()
		})
	}
}
