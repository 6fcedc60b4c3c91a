package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// enough returns how far a test goes, or by which steps: the whole way, or as is enough with -short,
// as with the race detector.
func enough(whole, short int) int {
	if testing.Short() {
		return short
	}
	return whole
}

// bubble runs a program in n processes, in virtual time, over links with faults. They close without:
// a process that has left does not acknowledge again what another one has sent last.
func bubble(t *testing.T, n int, faults fault.Config, cfg mpi.Config, program func(t *testing.T, c *mpi.Comm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var links []*fault.Link
		eps := mcdtest.Open(t, n, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Fabric:   fabric.Config{QueueFrames: 64}, // often full
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				f, err := fault.New(l, rand.New(rand.NewPCG(7, uint64(node))), faults)
				must(t, err)
				links = append(links, f)
				return f
			},
		})
		worlds := openAll(t, eps, cfg)
		var ranks sync.WaitGroup
		for _, w := range worlds {
			ranks.Go(func() { program(t, w.Comm()) })
		}
		ranks.Wait()
		for _, l := range links {
			must(t, l.SetConfig(fault.Config{}))
		}
		for _, w := range worlds {
			ranks.Go(func() { must(t, w.Close()) })
		}
		ranks.Wait()
	})
}

// openAll opens a world on each endpoint.
func openAll(t *testing.T, eps []*mcd.Endpoint, cfg mpi.Config) (worlds []*mpi.World) {
	t.Helper()
	for _, ep := range eps {
		w, err := mpi.Open(ep, cfg)
		must(t, err)
		worlds = append(worlds, w)
	}
	return worlds
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// pattern is the bytes of the k-th message.
func pattern(k, size int) []byte { return bytes.Clone(patternView(k, size)) }

// patternView is a pattern that is only read: all are parts of one.
func patternView(k, size int) []byte {
	const inverse = 183 // of 7, modulo 256
	from := int(uint8(k * 31 * inverse))
	return patterns[from : from+size]
}

// patterns has 7 i in byte i.
var patterns = func() []byte {
	b := make([]byte, 256+4<<20)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}()

// Messages of all sizes arrive, whichever end is there first.
func TestSend_Sizes(t *testing.T) {
	sizes := []int{0, 1, 64, 1400, 2048, 8191, 8192, 16 << 10, 16<<10 + 1, 100_000, 1 << 20}
	for _, faults := range []fault.Config{{}, {Loss: .1, Duplicate: .1}} {
		for _, late := range []int{-1, 0, 1} { // which rank
			bubble(t, 2, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				for k, size := range sizes {
					if c.Rank() == late {
						time.Sleep(10 * time.Millisecond)
					}
					if c.Rank() == 0 {
						must(t, mpi.Send(t.Context(), c, pattern(k, size), 1, k))
						continue
					}
					buf := make([]byte, size+10)
					s, err := mpi.Recv(t.Context(), c, buf, 0, k)
					must(t, err)
					if s.Source != 0 || s.Tag != k || s.Bytes() != size || !slices.Equal(buf[:size], pattern(k, size)) {
						t.Errorf("%d bytes: %+v", size, s)
					}
				}
			})
		}
	}
}

// A ring of processes exchanges elements at once, and with itself where there is one alone.
func TestSendrecv(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		bubble(t, n, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			for _, count := range []int{1, 10_000} {
				data, buf := make([]float64, count), make([]float64, count)
				for i := range data {
					data[i] = float64(c.Rank()*count + i)
				}
				left, right := (c.Rank()+n-1)%n, (c.Rank()+1)%n
				s, err := mpi.Sendrecv(t.Context(), c, data, right, 3, buf, left, 3)
				must(t, err)
				if mpi.Count[float64](s) != count || buf[count-1] != float64(left*count+count-1) {
					t.Errorf("%+v, %v", s, buf[count-1])
				}
			}
		})
	}
}

// Receives from any source take each message once.
func TestRecv_AnySource(t *testing.T) {
	bubble(t, 4, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		const each = 50
		if c.Rank() > 0 {
			for k := range each {
				must(t, mpi.Send(t.Context(), c, []int{c.Rank(), k}, 0, k%3))
			}
			return
		}
		var next [4]int
		for range 3 * each {
			buf := make([]int, 2)
			s, err := mpi.Recv(t.Context(), c, buf, mpi.AnySource, mpi.AnyTag)
			must(t, err)
			if s.Source != buf[0] || s.Tag != buf[1]%3 || next[s.Source] != buf[1] {
				t.Errorf("%+v, %v, want the %d-th", s, buf, next[s.Source])
			}
			next[s.Source]++
		}
	})
}

// What is wrong is told at once; a message that is too long is, with its beginning, or without.
func TestErrors(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() == 1 {
			for tag, size := range []int{9, 5000, 50_000} {
				must(t, mpi.Send(ctx, c, pattern(0, size), 0, tag))
			}
			return
		}
		for tag, size := range []int{4, 3000, 30_000} {
			buf := make([]byte, size)
			if s, err := mpi.Recv(ctx, c, buf, 1, tag); !errors.Is(err, mpi.ErrTruncate) || s.Source != 1 {
				t.Errorf("%+v, %v", s, err)
			}
		}
		for _, b := range []struct {
			err  error
			want error
		}{
			{mpi.Send(ctx, c, []byte{1}, 2, 0), mpi.ErrRank},
			{mpi.Send(ctx, c, []byte{1}, -1, 0), mpi.ErrRank},
			{mpi.Send(ctx, c, []byte{1}, 1, -1), mpi.ErrTag},
			{mpi.Send(ctx, c, []byte{1}, mpi.ProcNull, 0), nil},
			{second(mpi.Recv(ctx, c, []byte{1}, 2, 0)), mpi.ErrRank},
			{second(mpi.Recv(ctx, c, []byte{1}, 1, -2)), mpi.ErrTag},
			{second(mpi.Recv(ctx, c, []byte{1}, mpi.ProcNull, 0)), nil},
		} {
			if !errors.Is(b.err, b.want) {
				t.Errorf("%v, want %v", b.err, b.want)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A wait ends with its context: the receive takes no message then, and the next one does.
func TestContext(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		for _, size := range []int{8, 100_000} {
			buf := make([]byte, size)
			if c.Rank() == 0 {
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := mpi.Recv(short, c, buf, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				cancel()
				s, err := mpi.Recv(t.Context(), c, buf, 1, 0)
				must(t, err)
				if s.Bytes() != size || !slices.Equal(buf, pattern(5, size)) {
					t.Errorf("%+v", s)
				}
				short, cancel = context.WithTimeout(t.Context(), time.Second)
				if err := mpi.Ssend(short, c, buf, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				cancel()
				must(t, mpi.Ssend(t.Context(), c, buf, 1, 2))
				continue
			}
			time.Sleep(1500 * time.Millisecond)
			must(t, mpi.Send(t.Context(), c, pattern(5, size), 0, 0))
			time.Sleep(1500 * time.Millisecond)
			_, err := mpi.Recv(t.Context(), c, buf, 0, 2)
			must(t, err)
		}
	})
}

// A sender whose messages nobody takes is held up, and one of them is found behind any number.
func TestSend_WithoutCredit(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		const many = 5000
		if c.Rank() == 0 {
			var requests []*mpi.Request
			for k := range many {
				requests = append(requests, mpi.Isend(c, []int{k}, 1, 0))
			}
			requests = append(requests, mpi.Isend(c, []int{-1}, 1, 1))
			for _, r := range requests {
				_, err := r.Wait(t.Context())
				must(t, err)
			}
			return
		}
		time.Sleep(time.Second)
		buf := make([]int, 1)
		_, err := mpi.Recv(t.Context(), c, buf, mpi.AnySource, 1)
		must(t, err)
		for k := range many {
			_, err := mpi.Recv(t.Context(), c, buf, 0, 0)
			must(t, err)
			if buf[0] != k {
				t.Fatalf("%d, want %d", buf[0], k)
			}
		}
	})
}

// Close ends all waits, and may be called again.
func TestClose(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 1 {
			time.Sleep(2 * time.Second)
			return
		}
		var waits sync.WaitGroup
		buf := make([]byte, 100_000)
		for what, wait := range map[string]func() error{
			"send":    func() error { return mpi.Send(t.Context(), c, buf, 1, 0) },
			"receive": func() error { return second(mpi.Recv(t.Context(), c, make([]byte, 9), 1, 0)) },
			"any":     func() error { return second(mpi.Recv(t.Context(), c, make([]byte, 9), mpi.AnySource, 0)) },
			"probe":   func() error { return second(c.Probe(t.Context(), 1, 0)) },
			"one of":  func() error { return mpi.WaitAll(t.Context(), mpi.Irecv(c, make([]byte, 9), 1, 0)) },
		} {
			waits.Go(func() {
				if err := wait(); !errors.Is(err, mpi.ErrClosed) || !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		time.Sleep(time.Second)
		must(t, c.World().Close())
		waits.Wait()
		must(t, c.World().Close())
		if err := mpi.Send(t.Context(), c, buf, 1, 0); !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, _, err := c.Iprobe(1, 0); !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// What is wrong with a configuration is told, and a port is one world's.
func TestOpen(t *testing.T) {
	eps := mcdtest.Open(t, 2, mcdtest.Config{})
	for _, cfg := range []mpi.Config{
		{EagerLimit: -1}, {EagerLimit: mpi.MaxEagerLimit + 1}, {OfferFrom: -1},
		{Nodes: []mcd.NodeID{1}}, {Nodes: []mcd.NodeID{0, 1, 0}}, {Port: 254}, {Port: 255},
	} {
		if w, err := mpi.Open(eps[0], cfg); err == nil || !strings.HasPrefix(err.Error(), "mpi: Config.") {
			t.Errorf("%+v: %v, %v", cfg, w, err)
		}
	}
	if w, err := mpi.Open(eps[0], mpi.Config{Nodes: []mcd.NodeID{0, 2}}); !errors.Is(err, mcd.ErrUnknownNode) {
		t.Errorf("a node that is not known: %v, %v", w, err)
	}
	must(t, eps[1].SetNodes(nil))
	if w, err := mpi.Open(eps[1], mpi.Config{}); err == nil || !strings.Contains(err.Error(), "node table does not have this node, 1") {
		t.Errorf("before the node knows any: %v, %v", w, err)
	}
	w, err := mpi.Open(eps[0], mpi.Config{Nodes: []mcd.NodeID{1, 0}})
	must(t, err)
	if c := w.Comm(); c.Rank() != 1 || c.Size() != 2 || c.World() != w {
		t.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	for _, port := range []mcd.PortID{mpi.DefaultPort - 1, mpi.DefaultPort, mpi.DefaultPort + 1} { // barriers have the next one
		if _, err := mpi.Open(eps[0], mpi.Config{Port: port}); !errors.Is(err, mcd.ErrPortBusy) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	must(t, w.Close())
	again, err := mpi.Open(eps[0], mpi.Config{})
	must(t, err)
	must(t, again.Close())
}

// What a process has sent before it leaves is received after that; a message that it still had is
// not, and one of its next life is not complete by an answer to the former one's.
func TestLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		stays, err := mpi.Open(eps[0], mpi.Config{})
		must(t, err)
		leaves, err := mpi.Open(eps[1], mpi.Config{})
		must(t, err)
		must(t, mpi.Send(t.Context(), leaves.Comm(), []byte{7}, 0, 0))
		mpi.Issend(leaves.Comm(), []byte{8}, 0, 1)
		mpi.Isend(leaves.Comm(), make([]byte, 100_000), 0, 2)
		time.Sleep(time.Second)
		must(t, leaves.Close())
		again, err := mpi.Open(eps[1], mpi.Config{})
		must(t, err)
		next := mpi.Issend(again.Comm(), []byte{9}, 0, 1)
		time.Sleep(time.Second)
		buf := make([]byte, 100_000)
		for tag, want := range []byte{7, 8} {
			s, err := mpi.Recv(t.Context(), stays.Comm(), buf, 1, tag)
			must(t, err)
			if buf[0] != want || s.Bytes() != 1 {
				t.Errorf("%d, %+v, want %d", buf[0], s, want)
			}
		}
		if _, err := mpi.Recv(t.Context(), stays.Comm(), buf, 1, 2); !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("a message that is gone: %v", err)
		}
		if _, err := next.Wait(t.Context()); !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("a send of the next life: %v", err)
		}
		must(t, again.Close())
		must(t, stays.Close())
	})
}

// A process that begins anew is not taken for its former self: its messages are dropped, and counted.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		stays, err := mpi.Open(eps[0], mpi.Config{})
		must(t, err)
		dies, err := mpi.Open(eps[1], mpi.Config{})
		must(t, err)
		must(t, mpi.Send(t.Context(), dies.Comm(), []byte{1}, 0, 0))
		buf := make([]byte, 1)
		_, err = mpi.Recv(t.Context(), stays.Comm(), buf, 1, 0)
		must(t, err)
		must(t, dies.Close())
		again, err := mpi.Open(eps[1], mpi.Config{})
		must(t, err)
		err = mpi.Send(t.Context(), again.Comm(), []byte{2}, 0, 0)
		if err != nil && !errors.Is(err, mpi.ErrProcessFailed) { // it may be told before Send has returned
			t.Errorf("a send of the next life: %v", err)
		}
		time.Sleep(time.Second)
		if _, found, err := stays.Comm().Iprobe(1, 0); found || !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("found %v, %v", found, err)
		}
		if n := stays.Counters().Stale; n < 1 || n > 2 { // behind the message, unless it was told by then, one as it waits
			t.Errorf("%d records are stale, want 1 or 2", n)
		}
		_, err = mpi.Recv(t.Context(), again.Comm(), buf, 0, 0) // it was told
		if !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("%v", err)
		}
		must(t, again.Close())
		must(t, stays.Close())
	})
}
