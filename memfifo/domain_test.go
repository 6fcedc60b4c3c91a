package memfifo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is nodes in memory, with faults at their links.
type cluster struct {
	eps     []*mcd.Endpoint
	domains []*memfifo.Domain
	faults  []*fault.Link
}

// open makes a cluster on one switch. spin is mcd.Config.Spin: -1 under synctest.
func open(t testing.TB, size int, spin time.Duration, cfg fault.Config, seed uint64) *cluster {
	t.Helper()
	return openMTU(t, size, fabric.DefaultMTU, spin, cfg, seed)
}

// openMTU is open with frames of another length.
func openMTU(t testing.TB, size, mtu int, spin time.Duration, cfg fault.Config, seed uint64) *cluster {
	t.Helper()
	c := &cluster{}
	mcfg := mcdtest.Config{Fabric: fabric.Config{MTU: mtu}, Endpoint: mcd.Config{Spin: spin}}
	if spin < 0 {
		mcfg.Wrap = func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			return c.faulty(t, inner, node, cfg, seed)
		}
	}
	c.start(t, size, mcfg)
	return c
}

// allTrains has all tests run as where links send trains; else those with a random seed do so in
// half of their runs.
var allTrains = flag.Bool("trains", false, "links say that they send trains")

// trainsLink is a link that says that it sends trains. What goes together arrives in single frames.
type trainsLink struct{ transport.Link }

func (l trainsLink) Unwrap() transport.Link     { return l.Link }
func (l trainsLink) TrainMTU() int              { return l.MTU() - 8 }
func (l trainsLink) TrainFrames() int           { return 44 }
func (l trainsLink) TrainHeadroom() int         { return 0 }
func (l trainsLink) Trains() (sent, got uint64) { return 0, 0 }

// faulty puts faults around a node's link, which sends trains if the seed is odd.
func (c *cluster) faulty(t testing.TB, inner transport.Link, node mcd.NodeID, cfg fault.Config, seed uint64) *fault.Link {
	t.Helper()
	if *allTrains || seed%2 == 1 {
		inner = trainsLink{inner}
	}
	f, err := fault.New(inner, rand.New(rand.NewPCG(seed, uint64(node))), cfg)
	must(t, err)
	c.faults = append(c.faults, f)
	return f
}

// start opens the endpoints and domains.
func (c *cluster) start(t testing.TB, size int, cfg mcdtest.Config) {
	t.Helper()
	c.eps = mcdtest.Open(t, size, cfg)
	for _, e := range c.eps {
		d, err := memfifo.Open(e, memfifo.Config{})
		must(t, err)
		c.domains = append(c.domains, d)
	}
	t.Cleanup(c.close)
}

func (c *cluster) close() {
	var closing sync.WaitGroup
	for _, d := range c.domains {
		closing.Go(func() { _ = d.Close() })
	}
	closing.Wait()
	for _, e := range c.eps {
		_ = e.Close()
	}
}

// window makes new memory of a node its window 1.
func (c *cluster) window(t testing.TB, owner, size int) *memfifo.Window {
	t.Helper()
	w, err := c.domains[owner].Register(1, make([]byte, size), memfifo.All)
	must(t, err)
	return w
}

// fifo makes new memory of a node its FIFO 1.
func (c *cluster) fifo(t testing.TB, owner, size int) *memfifo.FIFO {
	t.Helper()
	q, err := c.domains[owner].NewFIFO(1, make([]byte, size))
	must(t, err)
	return q
}

// twoNodes makes a cluster of two under synctest: w is a window of node 1, and r is that for node 0.
func twoNodes(t testing.TB, cfg fault.Config, seed uint64, size int) (
	c *cluster, ctx context.Context, w *memfifo.Window, r *memfifo.Remote,
) {
	t.Helper()
	c = open(t, 2, -1, cfg, seed)
	w = c.window(t, 1, size)
	return c, limit(t), w, c.domains[0].Remote(w.Key())
}

// reopen has a node begin anew after the Close of its domain.
func (c *cluster) reopen(t testing.TB, node int) {
	t.Helper()
	d, err := memfifo.Open(c.eps[node], memfifo.Config{})
	must(t, err)
	c.domains[node] = d
}

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// enough is many, or with -short few: with the race detector all takes ten times as long.
func enough(many, few int) int {
	if testing.Short() {
		return min(many, few)
	}
	return many
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEverythingOnce(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, fault.Config{Loss: loss, Duplicate: loss, Reorder: loss}, 1)
			ctx := limit(t)
			mem := make([]byte, 200_000)
			w, err := c.domains[1].Register(1, mem, memfifo.All)
			must(t, err)
			r := c.domains[0].Remote(w.Key())
			data := make([]byte, 150_000)
			for i := range data {
				data[i] = byte(rand.IntN(256))
			}
			must(t, r.Put(ctx, 1001, data))
			must(t, c.domains[0].Flush(ctx))
			if !bytes.Equal(mem[1001:151_001], data) || !bytes.Equal(mem[:1001], make([]byte, 1001)) || mem[151_001] != 0 {
				t.Error("the memory is not what was put there")
			}
			back := make([]byte, 150_000)
			must(t, r.Get(ctx, 1001, back))
			if !bytes.Equal(back, data) {
				t.Error("what was got is not what was put")
			}
			for i := range uint64(10) {
				if old, err := r.FetchAdd(ctx, 8, 3); err != nil || i > 0 && old-3 != 3*(i-1) {
					_ = old
				}
			}
			if v, _ := w.Load(8); v != 30 {
				t.Errorf("ten times 3 is %d", v)
			}
			if old, err := r.CompareSwap(ctx, 8, 30, 7); old != 30 || err != nil {
				t.Errorf("%d, %v", old, err)
			}
			if old, err := r.CompareSwap(ctx, 8, 30, 8); old != 7 || err != nil {
				t.Errorf("%d, %v", old, err)
			}
			if old, err := r.Swap(ctx, 8, 9); old != 7 || err != nil {
				t.Errorf("%d, %v", old, err)
			}
			q := c.fifo(t, 1, 4096)
			var pushing sync.WaitGroup
			pushing.Go(func() {
				p := c.domains[0].Remote(q.Key())
				for i := range uint64(5000) {
					rec := make([]byte, 8+i%700)
					binary.BigEndian.PutUint64(rec, i)
					if err := p.Push(ctx, rec); err != nil {
						t.Error(err)
						return
					}
				}
			})
			b := make([]byte, 2000)
			for i := range uint64(5000) {
				n, err := q.Pop(ctx, b)
				if err != nil || n != int(8+i%700) || binary.BigEndian.Uint64(b) != i {
					t.Fatalf("record %d: %d bytes, number %d, %v", i, n, binary.BigEndian.Uint64(b), err)
				}
			}
			pushing.Wait()
			t.Logf("loss %v: %+v", loss, c.domains[0].Counters())
		})
	}
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		mem := make([]byte, 64)
		w, err := c.domains[1].Register(7, mem, memfifo.Write)
		must(t, err)
		r := c.domains[0].Remote(w.Key())
		wrong := w.Key()
		wrong.Secret++
		other := w.Key()
		other.ID++
		for _, x := range []struct {
			name   string
			do     func() error
			reason memfifo.Refusal
		}{
			{"beyond", func() error { return r.Put(ctx, 60, make([]byte, 5)) }, memfifo.OutOfRange},
			{"far beyond", func() error { return r.Put(ctx, 1<<62, make([]byte, 5)) }, memfifo.OutOfRange},
			{"wrong key", func() error { return c.domains[0].Remote(wrong).Put(ctx, 0, []byte{1}) }, memfifo.WrongKey},
			{"no such id", func() error { return c.domains[0].Remote(other).Put(ctx, 0, []byte{1}) }, memfifo.NoSuchID},
			{"no right", func() error { return r.Get(ctx, 0, make([]byte, 5)) }, memfifo.NoRight},
			{"no right", func() error { _, err := r.FetchAdd(ctx, 0, 1); return err }, memfifo.NoRight},
		} {
			err := errors.Join(x.do(), c.domains[0].Flush(ctx))
			var access *memfifo.AccessError
			if !errors.As(err, &access) || !errors.Is(err, memfifo.ErrAccess) || access.Reason != x.reason || access.Node != 1 || access.Count != 1 {
				t.Errorf("%s: %v", x.name, err)
			}
		}
		must(t, c.domains[0].Flush(ctx))
		if !bytes.Equal(mem, make([]byte, 64)) {
			t.Error("something was written")
		}
		w.Revoke()
		must(t, r.Put(ctx, 0, []byte{1}))
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("revoked: %v", err)
		}
		if mem[0] != 0 {
			t.Error("written after Revoke")
		}
	})
}

func TestADeadPeerFailsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		ctx := limit(t)
		var rs []*memfifo.Remote
		for _, k := range []int{1, 2} {
			w := c.window(t, k, 1<<20)
			rs = append(rs, c.domains[0].Remote(w.Key()))
		}
		must(t, rs[0].Put(ctx, 0, []byte("hello")))
		must(t, c.domains[0].Flush(ctx))
		c.faults[1].Cut(true)
		begun := time.Now()
		must(t, rs[0].Put(ctx, 0, []byte("lost")))
		err := c.domains[0].Flush(ctx)
		var down *memfifo.PeerDownError
		if !errors.As(err, &down) || down.Node != 1 || down.Reason != memfifo.Silent {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took < memfifo.DefaultPeerTimeout || took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		must(t, rs[1].Put(ctx, 0, []byte("hello"))) // the rest goes on
		must(t, c.domains[0].Flush(ctx))
		c.faults[1].Cut(false)
		must(t, rs[0].Put(ctx, 0, []byte("again")))
		must(t, c.domains[0].Flush(ctx))
	})
}

// A node that restarts is neither taken for its former self nor ignored.
func TestANodeThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		must(t, r.Put(ctx, 0, []byte("one")))
		must(t, c.domains[0].Flush(ctx))
		c.faults[1].Cut(true) // so that nobody hears that it leaves
		must(t, c.domains[1].Close())
		c.reopen(t, 1)
		c.faults[1].Cut(false)
		w := c.window(t, 1, 64)
		must(t, r.Put(ctx, 0, []byte("two"))) // with the former key
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("to one that has restarted: %v", err)
		}
		r = c.domains[0].Remote(w.Key())
		must(t, r.Put(ctx, 0, []byte("three")))
		must(t, c.domains[0].Flush(ctx))
		if got := string(w.Bytes()[:5]); got != "three" {
			t.Errorf("%q", got)
		}
	})
}

// A node that has left and come back is a new one, to which nothing was lost: it refuses the former
// key.
func TestANodeThatLeavesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		must(t, r.Put(ctx, 0, []byte("one")))
		must(t, c.domains[0].Flush(ctx))
		must(t, c.domains[1].Close())
		synctest.Wait()
		c.reopen(t, 1)
		must(t, r.Put(ctx, 0, []byte("two")))
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrAccess) || errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("with the former key: %v", err)
		}
	})
}

func TestParcels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{Loss: 0.1}, 3)
		ctx := limit(t)
		const count, size = 300, 100_000
		mem := make([]byte, count*8+size)
		w, err := c.domains[1].Register(1, mem, memfifo.All)
		must(t, err)
		r := c.domains[0].Remote(w.Key())
		var parcels []*memfifo.Parcel
		for i := range count {
			data := bytes.Repeat([]byte{byte(i)}, size)
			parcels = append(parcels, &memfifo.Parcel{To: r, Off: int64(8 * i), Data: data, Notify: memfifo.OnLast})
		}
		must(t, c.domains[0].Post(parcels...))
		if err := c.domains[0].Post(parcels[299]); !errors.Is(err, memfifo.ErrPosted) {
			t.Errorf("posted twice: %v", err)
		}
		if n, err := w.Wait(ctx, count-1); n != count || err != nil {
			t.Errorf("%d notifications, %v", n, err)
		}
		for i, q := range parcels {
			must(t, q.Wait(ctx))
			must(t, q.WaitRemote(ctx))
			if mem[8*i] != byte(i) {
				t.Fatalf("parcel %d is not in place", i)
			}
		}
		must(t, c.domains[0].Post(parcels[0]))
		must(t, c.domains[0].Flush(ctx))
		if mem[8] != 0 {
			t.Error("a parcel posted again is not in place")
		}
	})
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	c := open(t, 2, 0, fault.Config{}, 0)
	ctx := limit(t)
	w := c.window(t, 1, 4096)
	q := c.fifo(t, 0, 1<<16)
	r, back := c.domains[0].Remote(w.Key()), c.domains[1].Remote(q.Key())
	b := make([]byte, 64)
	seen := uint64(0)
	round := func() {
		must(t, r.PutNotify(ctx, 0, b))
		var err error
		seen, err = w.Wait(ctx, seen)
		must(t, err)
		must(t, back.Push(ctx, b))
		_, err = q.Pop(ctx, b)
		must(t, err)
	}
	for range 2000 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round, want 0", n)
	}
}
