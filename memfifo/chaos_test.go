package memfifo_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// chaos is a cluster whose cables are cut, and whose node 0 restarts, while the others work.
type chaos struct {
	*cluster
	t       *testing.T
	mu      sync.Mutex
	windows []*memfifo.Window
	fifos   []*memfifo.FIFO
	whole   [][]byte // all windows that there ever were, with canaries
	taking  sync.WaitGroup
}

const chaosRegion = 20_000

// serve gives a node a window and a FIFO, and a goroutine that pops its records.
func (c *chaos) serve(k int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mem := bytes.Repeat([]byte{0xa5}, writers*len(c.domains)*chaosRegion+2*canary)
	w, err := c.domains[k].Register(1, mem[canary:len(mem)-canary], memfifo.All)
	if err != nil {
		c.t.Error(err)
		return
	}
	q, err := c.domains[k].NewFIFO(1, make([]byte, 100_000))
	if err != nil {
		c.t.Error(err)
		return
	}
	c.windows[k], c.fifos[k], c.whole = w, q, append(c.whole, mem)
	c.taking.Go(func() {
		last := map[int]int{}
		b := make([]byte, 100_000)
		for {
			n, err := q.Pop(context.Background(), b)
			if err != nil {
				return
			}
			sender, number, err := readStamp(b[:n])
			if err != nil || number <= last[sender] {
				c.t.Errorf("node %d: record %d of %d behind %d, %v", k, number, sender, last[sender], err)
			}
			last[sender] = number
		}
	})
}

func (c *chaos) remotes(from, to int) (w, q *memfifo.Remote) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.domains[from].Remote(c.windows[to].Key()), c.domains[from].Remote(c.fifos[to].Key())
}

// disturb cuts cables, and restarts node 0.
func (c *chaos) disturb(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		k := rng.IntN(len(c.domains))
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		if k == 0 && rng.IntN(2) == 0 {
			_ = c.domains[0].Close()
			d, err := memfifo.Open(c.eps[0], memfifo.Config{})
			if err != nil {
				c.t.Error(err)
				return
			}
			c.domains[0] = d
			c.serve(0)
			continue
		}
		c.faults[k].Cut(true)
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
		c.faults[k].Cut(false)
	}
}

// work operates on all nodes until the disturbance is over. The only errors are losses, and
// refusals by a node that has restarted.
func (c *chaos) work(ctx context.Context, id int, rng *rand.Rand) {
	k := id / writers
	d := c.domains[k]
	all := context.Background()
	number := 0
	for ctx.Err() == nil {
		w, q := c.remotes(k, (k+1+rng.IntN(len(c.domains)-1))%len(c.domains))
		off := int64(id * chaosRegion)
		data := bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(chaosRegion-8))
		var err error
		switch rng.IntN(7) {
		case 0:
			err = w.Put(all, off, data)
		case 1:
			err = w.Get(all, off, data)
		case 2:
			_, err = w.FetchAdd(all, off, 1)
		case 3:
			number++
			err = q.Push(all, stamped(id, number, rng.IntN(49_000)))
		case 4:
			number++
			err = q.TryPush(all, stamped(id, number, 100))
		case 5:
			p := &memfifo.Parcel{To: w, Off: off, Data: data}
			if err = d.Post(p); err == nil && rng.IntN(2) == 0 {
				err = p.WaitRemote(all)
			}
		case 6:
			soon, cancel := context.WithTimeout(all, time.Millisecond)
			err = d.Flush(soon)
			cancel()
		}
		if err != nil {
			c.expected(k, err)
			c.expected(k, d.Flush(all))
		}
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
	}
}

func (c *chaos) expected(k int, err error) {
	for _, known := range []error{memfifo.ErrPeerDown, memfifo.ErrAccess, memfifo.ErrFull, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return
		}
	}
	if err != nil {
		c.t.Errorf("node %d: %v", k, err)
	}
}

// settle writes a node's regions once more: no operation fails now, and no earlier one is done
// later.
func (c *chaos) settle(id int) {
	k := id / writers
	ctx := context.Background()
	for to := range c.domains {
		if to == k {
			continue
		}
		want := bytes.Repeat([]byte{byte(100 + id)}, chaosRegion)
		w, _ := c.remotes(k, to)
		for range 4 {
			if _, err := w.FetchAdd(ctx, 0, 0); err == nil && c.domains[k].Flush(ctx) == nil {
				break
			}
			_ = c.domains[k].Flush(ctx)
		}
		if err := errors.Join(w.Put(ctx, int64(id*chaosRegion), want), c.domains[k].Flush(ctx)); err != nil {
			c.t.Errorf("node %d to %d, when all is well again: %v", k, to, err)
		}
		c.mu.Lock()
		got := c.windows[to].Bytes()[id*chaosRegion:][:chaosRegion]
		c.mu.Unlock()
		time.Sleep(time.Second)
		if !bytes.Equal(got, want) {
			c.t.Errorf("node %d to %d: what was put is not what is there", k, to)
		}
	}
}

// Cables are cut and mended, and a node restarts: no goroutine hangs, records come once and in
// order, and afterwards all operations work.
func TestFailure_Chaos(t *testing.T) {
	for range enough(2, 1) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed) // at once, as a deadlock ends the test
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 99))
			nodes := 3 + rng.IntN(2)
			c := &chaos{
				cluster: open(t, nodes, -1, fault.Config{Loss: 0.03, Duplicate: 0.05, Reorder: 0.05, Delay: 0.02, DelayMax: time.Second}, seed),
				t:       t, windows: make([]*memfifo.Window, nodes), fifos: make([]*memfifo.FIFO, nodes),
			}
			for k := range nodes {
				c.serve(k)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var all sync.WaitGroup
			all.Go(func() { c.disturb(ctx, rng) })
			for id := writers; id < writers*nodes; id++ {
				all.Go(func() { c.work(ctx, id, rand.New(rand.NewPCG(seed, uint64(id)))) })
			}
			all.Wait()
			for id := writers; id < writers*nodes; id++ {
				c.settle(id)
			}
			for _, mem := range c.whole {
				if !bytes.Equal(mem[:canary], mem[len(mem)-canary:]) || mem[0] != 0xa5 {
					t.Error("written around a window")
				}
			}
			c.close()
			c.taking.Wait()
		})
	}
}
