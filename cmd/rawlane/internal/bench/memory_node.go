package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/spf13/cobra"
)

// memoryNode is the part of one node.
type memoryNode struct {
	b      *memoryBench
	ep     *mcd.Endpoint
	d      *memfifo.Domain
	group  *barrier.Group
	window *memfifo.Window
	fifo_  *memfifo.FIFO
	seen   uint64
	other  *memfifo.Remote // window of the other of nodes 0 and 1
	queue  *memfifo.Remote // likewise its FIFO
	data   []byte          // what this node sends
	x      *cluster.Exchanger
}

func (b *memoryBench) node(ctx context.Context, ep *mcd.Endpoint, h launch.Host, cmd *cobra.Command) (err error) {
	n := &memoryNode{b: b, ep: ep}
	barriers, err := barrier.Open(ep, barrier.Config{})
	if err != nil {
		return err
	}
	if n.group, err = barriers.Group(barrier.GroupConfig{}); err != nil {
		return err
	}
	if n.d, err = memfifo.Open(ep, memfifo.Config{}); err != nil {
		return err
	}
	if err := n.meet(ctx); err != nil {
		return err
	}
	table := cli.Lines{Out: cmd.OutOrStdout(), JSON: b.json}
	note := cli.NewProgress(cmd.ErrOrStderr())
	for _, size := range b.sizes {
		if ep.Node() == 0 {
			note.Say("%s, %d bytes ...", b.name, size)
		}
		r := b.result(ep, size, h)
		before := n.d.Counters()
		if ep.Node() <= 1 {
			n.fill(size)
			if err := b.measure(n, ctx, size, r); err != nil {
				return err
			}
		}
		if err := n.group.Barrier(ctx); err != nil {
			return err
		}
		if ep.Node() == 0 {
			note.Clear()
			after := n.d.Counters()
			r.Frames, r.Again = after.Sent-before.Sent, after.Retransmitted-before.Retransmitted
			if err := table.Write(r, r.head(), r.line()); err != nil {
				return err
			}
		}
	}
	return errors.Join(n.d.Flush(ctx), n.group.Barrier(ctx), n.x.Close(), n.d.Close(), n.group.Close())
}

// meet makes windows and FIFOs, and exchanges their keys.
func (n *memoryNode) meet(ctx context.Context) (err error) {
	most := slices.Max(n.b.sizes)
	if n.window, err = n.d.Register(1, make([]byte, max(most, 64)+16), memfifo.All); err != nil {
		return err
	}
	if n.fifo_, err = n.d.NewFIFO(1, make([]byte, benchFIFO)); err != nil {
		return err
	}
	if n.x, err = cluster.OpenExchanger(n.ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout}); err != nil {
		return err
	}
	keys, err := n.x.Exchange(ctx, []byte(n.window.Key().String()+" "+n.fifo_.Key().String()))
	if err != nil || n.ep.Node() > 1 {
		return err
	}
	return n.use(string(keys[1-n.ep.Node()]))
}

func (n *memoryNode) use(keys string) error {
	var window, fifo string
	if _, err := fmt.Sscan(keys, &window, &fifo); err != nil {
		return err
	}
	w, err1 := memfifo.ParseKey(window)
	f, err2 := memfifo.ParseKey(fifo)
	n.other, n.queue = n.d.Remote(w), n.d.Remote(f)
	return errors.Join(err1, err2)
}

// notified waits for the next notification. More of them may be there already, for later.
func (n *memoryNode) notified(ctx context.Context) error {
	_, err := n.window.Wait(ctx, n.seen)
	n.seen++
	return err
}

// fill makes the data to send: the same on both nodes, in all runs.
func (n *memoryNode) fill(size int) {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	n.data = make([]byte, size)
	for i := range n.data {
		n.data[i] = byte(rng.Uint32())
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// compare checks that b is the data that the other node has sent.
func (n *memoryNode) compare(what string, b []byte) error {
	if got, want := crc32.Checksum(b, castagnoli), crc32.Checksum(n.data, castagnoli); got != want {
		return fmt.Errorf("%s: %d bytes arrived with checksum %08x, and were sent with %08x", what, len(b), got, want)
	}
	return nil
}

// times returns the number of round trips of a size.
func (b *memoryBench) times(size int) int {
	return int(max(1, min(int64(b.iters), b.bytes/int64(size))))
}

// many returns the number of messages of a size in --bytes.
func (b *memoryBench) many(size int) int { return int(min(max(1, b.bytes/int64(size)), 2_000_000)) }

// pingPong measures half round trips: node 0 sends and receives, node 1 receives and sends.
func (n *memoryNode) pingPong(size int, r *memoryResult, send, receive func() error) error {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	count := n.b.times(size)
	warm := max(20, count/10)
	for i := range warm + count {
		start := time.Now()
		var err error
		if n.ep.Node() == 0 {
			err = errors.Join(send(), receive())
		} else {
			err = errors.Join(receive(), send())
		}
		if err != nil {
			return err
		}
		if i >= warm {
			_ = h.RecordValue(int64(time.Since(start)) / 2) // below a minute
		}
	}
	r.Iters = count
	r.record(h)
	return nil
}

// rate measures a number of sends of a size, until all are confirmed.
func (n *memoryNode) rate(
	ctx context.Context, count, size int, send func() error,
) (perSecond, mbPerS float64, err error) {
	start := time.Now()
	for range count {
		if err := send(); err != nil {
			return 0, 0, err
		}
	}
	if err := n.d.Flush(ctx); err != nil {
		return 0, 0, err
	}
	took := time.Since(start).Seconds()
	return float64(count) / took, float64(count) * float64(size) / took / 1e6, nil
}

func (n *memoryNode) put(ctx context.Context, size int, r *memoryResult) (err error) {
	send := func() error { return n.other.PutNotify(ctx, 8, n.data) }
	receive := func() error { return n.notified(ctx) }
	if err := n.pingPong(size, r, send, receive); err != nil {
		return err
	}
	stream := func() error { return n.other.Put(ctx, 8, n.data) }
	if n.ep.Node() == 0 {
		if r.MsgsPerS, r.MBPerS, err = n.rate(ctx, n.b.many(size), size, stream); err != nil {
			return err
		}
		if err := send(); err != nil { // tells the other one that this is over
			return err
		}
	} else if err := receive(); err != nil {
		return err
	}
	// Both at once: it begins when each has heard of the other.
	if err := errors.Join(send(), receive()); err != nil {
		return err
	}
	if _, r.DuplexMBPerS, err = n.rate(ctx, n.b.many(size), size, stream); err != nil {
		return err
	}
	if err := errors.Join(send(), receive()); err != nil {
		return err
	}
	return n.compare("put", n.window.Bytes()[8:8+size])
}

func (n *memoryNode) get(ctx context.Context, size int, r *memoryResult) (err error) {
	if n.ep.Node() == 1 {
		copy(n.window.Bytes()[8:], n.data)
		if err := n.other.Signal(ctx); err != nil {
			return err
		}
		return n.notified(ctx)
	}
	if err := n.notified(ctx); err != nil {
		return err
	}
	buf := make([]byte, size)
	if err := n.calls(size, r, func() error { return n.other.Get(ctx, 8, buf) }); err != nil {
		return err
	}
	return errors.Join(n.compare("get", buf), n.other.Signal(ctx))
}

// calls measures operations with an answer, at node 0.
func (n *memoryNode) calls(size int, r *memoryResult, do func() error) error {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	count := n.b.times(size)
	begun := time.Now()
	for i := range count + count/10 {
		if i == count/10 {
			begun = time.Now()
		}
		start := time.Now()
		if err := do(); err != nil {
			return err
		}
		if i >= count/10 {
			_ = h.RecordValue(int64(time.Since(start))) // below a minute
		}
	}
	took := time.Since(begun).Seconds()
	r.Iters, r.MsgsPerS, r.MBPerS = count, float64(count)/took, float64(count)*float64(size)/took/1e6
	r.record(h)
	return nil
}

func (n *memoryNode) fifo(ctx context.Context, size int, r *memoryResult) (err error) {
	buf := make([]byte, size)
	send := func() error { return n.queue.Push(ctx, n.data) }
	receive := func() error {
		got, err := n.fifo_.Pop(ctx, buf)
		if err == nil {
			err = n.compare("fifo", buf[:got])
		}
		return err
	}
	if err := n.pingPong(size, r, send, receive); err != nil {
		return err
	}
	count := max(1, n.b.many(size)/memoryBatch) * memoryBatch
	if n.ep.Node() == 1 {
		for range 2 {
			for range count {
				if _, err := n.fifo_.Pop(ctx, buf); err != nil {
					return err
				}
			}
		}
		return n.compare("fifo", buf)
	}
	if r.MsgsPerS, r.MBPerS, err = n.rate(ctx, count, size, send); err != nil {
		return err
	}
	batch := slices.Repeat([][]byte{n.data}, memoryBatch)
	push := func() error { return n.queue.PushBatch(ctx, batch...) }
	perSecond, _, err := n.rate(ctx, count/memoryBatch, size*memoryBatch, push)
	r.BatchedPerS = perSecond * memoryBatch
	return err
}

func (n *memoryNode) amo(ctx context.Context, size int, r *memoryResult) (err error) {
	if n.ep.Node() == 1 {
		if err := errors.Join(n.window.Store(0, 0), n.other.Signal(ctx)); err != nil {
			return err
		}
		return n.notified(ctx)
	}
	if err := n.notified(ctx); err != nil {
		return err
	}
	added := uint64(0)
	err = n.calls(size, r, func() error {
		old, err := n.other.FetchAdd(ctx, 0, 1)
		if err == nil && old != added {
			err = fmt.Errorf("amo: the word was %d, want %d", old, added)
		}
		added++
		return err
	})
	return errors.Join(err, n.other.Signal(ctx))
}
