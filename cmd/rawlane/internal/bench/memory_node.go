package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

const (
	// memoryBatch is the number of records in a batch.
	memoryBatch = 64
	// benchFIFO is the memory of a FIFO: several of the longest records.
	benchFIFO = 1 << 20
	// maxMemoryMessages bounds the messages of a size.
	maxMemoryMessages = 2_000_000
	// memoryWarmUp is the least number of operations that do not count.
	memoryWarmUp = 20
)

// memoryNode is a node with its memory.
type memoryNode struct {
	*node
	b       *memoryBench
	d       *memfifo.Domain
	x       *cluster.Exchanger
	window  *memfifo.Window
	records *memfifo.FIFO
	seen    uint64          // notifications
	other   *memfifo.Remote // window of the other of nodes 0 and 1
	queue   *memfifo.Remote // likewise its FIFO
	data    []byte          // what this node sends
}

// open makes the window and the FIFO, and exchanges their keys.
func (n *memoryNode) open(ctx context.Context) (err error) {
	if n.d, err = memfifo.Open(n.ep, memfifo.Config{PeerTimeout: launch.AskTimeout}); err != nil {
		return err
	}
	most := slices.Max(n.b.sizes)
	if n.window, err = n.d.Register(1, make([]byte, max(most, 64)+16), memfifo.All); err != nil {
		return err
	}
	if n.records, err = n.d.NewFIFO(1, make([]byte, benchFIFO)); err != nil {
		return err
	}
	if n.x, err = cluster.OpenExchanger(n.ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout}); err != nil {
		return err
	}
	own, err := json.Marshal([]memfifo.Key{n.window.Key(), n.records.Key()})
	if err != nil {
		return err
	}
	all, err := n.x.Exchange(ctx, own)
	if err != nil || n.ep.Node() > 1 {
		return err
	}
	var keys [2]memfifo.Key
	if err := json.Unmarshal(all[1-n.ep.Node()], &keys); err != nil {
		return err
	}
	n.other, n.queue = n.d.Remote(keys[0]), n.d.Remote(keys[1])
	return n.expect(1 - n.ep.Node())
}

// expect has waits end when the other node dies: it is there, as its keys are.
func (n *memoryNode) expect(other mcd.NodeID) error {
	return errors.Join(n.window.Expect(other), n.records.Expect(other))
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

// many returns the number of messages in --bytes, of which there is a most.
func (n *memoryNode) many() int {
	return int(min(max(1, n.b.bytes/int64(len(n.data))), maxMemoryMessages))
}

// timed runs an operation as often as --iters and --bytes say, records its times, and returns that
// of all.
func (n *memoryNode) timed(r *memoryResult, messages int64, do, check func() error) (time.Duration, error) {
	r.Iters = int(max(1, min(int64(n.b.iters), n.b.bytes/int64(r.SizeBytes))))
	h, took, err := timed(max(memoryWarmUp, r.Iters/warmUpShare), r.Iters, messages, do, check)
	if err == nil {
		r.record(h)
	}
	return took, err
}

// pingPong measures half round trips: node 0 sends and receives, node 1 receives and sends. Both
// check at once what they have got: node 0 before it sends again, and node 1 when it has
// answered.
func (n *memoryNode) pingPong(r *memoryResult, send, receive, check func() error) error {
	first, second := send, receive
	if n.ep.Node() == 1 {
		first, second = receive, send
	}
	_, err := n.timed(r, 2, func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	}, check)
	return err
}

// stream measures a number of sends of a size, until all are confirmed.
func (n *memoryNode) stream(
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

func (n *memoryNode) put(ctx context.Context, r *memoryResult) (err error) {
	size := r.SizeBytes
	send := func() error { return n.other.PutNotify(ctx, 8, n.data) }
	receive := func() error { return n.notified(ctx) }
	if err := n.pingPong(r, send, receive, unchecked); err != nil {
		return err
	}
	put := func() error { return n.other.Put(ctx, 8, n.data) }
	if n.ep.Node() == 0 {
		r.Streamed = n.many()
		if r.MsgsPerS, r.MBPerS, err = n.stream(ctx, r.Streamed, size, put); err != nil {
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
	if _, r.DuplexMBPerS, err = n.stream(ctx, n.many(), size, put); err != nil {
		return err
	}
	if err := errors.Join(send(), receive()); err != nil {
		return err
	}
	return n.compare("put", n.window.Bytes()[8:8+size])
}

func (n *memoryNode) fifo(ctx context.Context, r *memoryResult) (err error) {
	buf := make([]byte, r.SizeBytes)
	send := func() error { return n.queue.Push(ctx, n.data) }
	got := 0
	receive := func() (err error) { got, err = n.records.Pop(ctx, buf); return err }
	check := func() error { return n.compare("fifo", buf[:got]) }
	if err := n.pingPong(r, send, receive, check); err != nil {
		return err
	}
	batches := max(1, n.many()/memoryBatch)
	if n.ep.Node() == 1 {
		for range 2 * batches * memoryBatch {
			if _, err := n.records.Pop(ctx, buf); err != nil {
				return err
			}
		}
		return n.compare("fifo", buf)
	}
	r.Streamed = batches * memoryBatch
	if r.MsgsPerS, r.MBPerS, err = n.stream(ctx, r.Streamed, r.SizeBytes, send); err != nil {
		return err
	}
	batch := slices.Repeat([][]byte{n.data}, memoryBatch)
	push := func() error { return n.queue.PushBatch(ctx, batch...) }
	perSecond, _, err := n.stream(ctx, batches, r.SizeBytes*memoryBatch, push)
	r.BatchedPerS = perSecond * memoryBatch
	return err
}

func (n *memoryNode) get(ctx context.Context, r *memoryResult) error {
	copy(n.window.Bytes()[8:], n.data)
	buf := make([]byte, r.SizeBytes)
	err := n.calls(ctx, r, func() error { return n.other.Get(ctx, 8, buf) })
	if err != nil || n.ep.Node() == 1 {
		return err
	}
	return n.compare("get", buf)
}

func (n *memoryNode) amo(ctx context.Context, r *memoryResult) error {
	if err := n.window.Store(0, 0); err != nil {
		return err
	}
	added := uint64(0)
	return n.calls(ctx, r, func() error {
		old, err := n.other.FetchAdd(ctx, 0, 1)
		if err == nil && old != added {
			err = fmt.Errorf("amo: the word was %d, want %d", old, added)
		}
		added++
		return err
	})
}

// calls measures operations with an answer, at node 0, from when node 1 is ready; node 1 waits
// until they are over.
func (n *memoryNode) calls(ctx context.Context, r *memoryResult, do func() error) error {
	if n.ep.Node() == 1 {
		if err := n.other.Signal(ctx); err != nil {
			return err
		}
		return n.notified(ctx)
	}
	if err := n.notified(ctx); err != nil {
		return err
	}
	took, err := n.timed(r, 1, do, unchecked)
	if err != nil {
		return err
	}
	r.recordRates(int64(r.Iters), took)
	return n.other.Signal(ctx)
}
