package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// memoryBench is one run of a benchmark of remote memory, between nodes 0 and 1.
type memoryBench struct {
	memoryKind
	cluster launch.ClusterFlags
	sizes   []int
	iters   int
	bytes   int64
	json    bool
}

type memoryKind struct {
	name, short, long string
	sizes             []int
	measure           func(*memoryNode, context.Context, int, *memoryResult) error
}

var memoryKinds = []memoryKind{
	{
		"put", "Remote write", `Node 0 writes to node 1's memory, which sees it, and writes back: microseconds are half of that. Then node 0 writes
as much as --bytes, one Put after the other, until all is confirmed: MB/s; and both write at the same time: duplex, each way.`,
		[]int{4, 64, 1024, 16384, 65536, 1 << 20}, (*memoryNode).put,
	},
	{
		"get", "Remote read", `Node 0 reads node 1's memory: microseconds are from the question until all is there.`,
		[]int{4, 64, 1024, 16384, 65536, 1 << 20}, (*memoryNode).get,
	},
	{
		"fifo", "Records through a FIFO", `Node 0 pushes a record to node 1, which pops it and pushes it back: microseconds are half of that. Then node 0
pushes as many as --bytes allows: one call each (records/s), and in batches of 64 (batched).`,
		[]int{8, 64, 1024, 16384}, (*memoryNode).fifo,
	},
	{
		"amo", "Atomic operations on remote memory", `Node 0 adds to a word of node 1's memory: microseconds are from the call until the answer.`,
		[]int{8}, (*memoryNode).amo,
	},
}

const (
	// maxMemory bounds --size and --bytes: what a window or a run may take.
	maxMemory = 1 << 30
	// maxMemoryIters keeps a run's end in sight.
	maxMemoryIters = 1_000_000
	// memoryBatch is how many records are pushed at once.
	memoryBatch = 64
	// benchFIFO is the memory of the FIFOs: several of the longest records.
	benchFIFO = 1 << 20
)

func newBenchMemoryCommand(k memoryKind) *cobra.Command {
	b := &memoryBench{memoryKind: k, sizes: k.sizes}
	cmd := &cobra.Command{
		Use:   k.name + " [flags]",
		Short: k.short,
		Long:  k.long + "\n\nWhat has arrived is compared with what was sent; again is how many frames node 0 has sent anew. Other nodes than 0 and 1 are idle.",
		Args:  cli.NoArguments,
		RunE:  b.run,
	}
	b.cluster.Register(cmd)
	b.cluster.ModeFlag(cmd)
	b.cluster.FaultFlags(cmd)
	f := cmd.Flags()
	if k.name != "amo" {
		cli.SizesFlag(f, &b.sizes, "size", "sizes")
	}
	f.IntVar(&b.iters, "iters", 5000, "round trips per size, fewer of large ones: no more than --bytes in all")
	f.Int64Var(&b.bytes, "bytes", 64<<20, "bytes to send per size, for the rates")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	return cmd
}

func (b *memoryBench) validate() error {
	if b.iters < 1 || b.iters > maxMemoryIters {
		return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxMemoryIters)
	}
	if b.bytes < 1 || b.bytes > 1<<40 {
		return cli.Misuse("--bytes %d: want 1 to %d", b.bytes, int64(1<<40))
	}
	most := maxMemory
	if b.name == "fifo" {
		most = memfifo.MaxRecord
	}
	for _, s := range b.sizes {
		if s < 1 || s > most {
			return cli.Misuse("--size %d: want 1 to %d", s, most)
		}
	}
	return b.cluster.Validate()
}

func (b *memoryBench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	b.cluster.Grace = 2 * memfifo.DefaultPeerTimeout
	return b.cluster.RunNodes(cmd, func(ctx context.Context, ep *mcd.Endpoint, nic string) error {
		return b.node(ctx, ep, launch.ThisHost(nic, ep.MaxPayload()+mcd.HeaderLen), cmd)
	})
}

// memoryNode is one node's part.
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
	got    *launch.ResultServer
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
	table := memoryTable{out: cmd.OutOrStdout(), json: b.json}
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
			if err := table.write(r); err != nil {
				return err
			}
		}
	}
	n.got.Close()
	return errors.Join(n.d.Flush(ctx), n.group.Barrier(ctx), n.d.Close(), n.group.Close())
}

// meet makes windows and FIFOs, and exchanges their keys: node 0 asks node 1 for its, and writes
// its own there.
func (n *memoryNode) meet(ctx context.Context) (err error) {
	most := slices.Max(n.b.sizes)
	if n.window, err = n.d.Register(1, make([]byte, max(most, 64)+16), memfifo.All); err != nil {
		return err
	}
	if n.fifo_, err = n.d.NewFIFO(1, make([]byte, benchFIFO)); err != nil {
		return err
	}
	if n.got, err = launch.NewResultServer(n.ep, 1); err != nil {
		return err
	}
	keys := n.window.Key().String() + " " + n.fifo_.Key().String()
	switch n.ep.Node() {
	case 0:
		theirs, err := n.got.Fetch(ctx, 1, 0)
		if err != nil {
			return err
		}
		if err := n.use(string(theirs)); err != nil {
			return err
		}
		if err := n.other.PutNotify(ctx, 0, append([]byte(keys), 0)); err != nil {
			return err
		}
		return errors.Join(n.d.Flush(ctx), n.group.Barrier(ctx))
	case 1:
		n.got.Put(0, []byte(keys))
		if err := n.notified(ctx); err != nil {
			return err
		}
		text := n.window.Bytes()
		if err := n.use(string(text[:slices.Index(text, 0)])); err != nil {
			return err
		}
	}
	return n.group.Barrier(ctx)
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

// notified waits for the next notification. There may be more already: they are for later.
func (n *memoryNode) notified(ctx context.Context) error {
	_, err := n.window.Wait(ctx, n.seen)
	n.seen++
	return err
}

// fill makes up what this node sends: the same on both, in all runs.
func (n *memoryNode) fill(size int) {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	n.data = make([]byte, size)
	for i := range n.data {
		n.data[i] = byte(rng.Uint32())
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// compare makes sure that some memory is what the other node has sent.
func (n *memoryNode) compare(what string, b []byte) error {
	if got, want := crc32.Checksum(b, castagnoli), crc32.Checksum(n.data, castagnoli); got != want {
		return fmt.Errorf("%s: %d bytes arrived with checksum %08x, and were sent with %08x", what, len(b), got, want)
	}
	return nil
}

// times is how often something of a size is done.
func (b *memoryBench) times(size int) int {
	return int(max(1, min(int64(b.iters), b.bytes/int64(size))))
}

// many is how many of a size come to --bytes.
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

// rate measures what a number of sends of a size come to, until all is confirmed.
func (n *memoryNode) rate(ctx context.Context, count, size int, send func() error) (perSecond, mbPerS float64, err error) {
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

// calls measures operations that wait for an answer, at node 0.
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
	perSecond, _, err := n.rate(ctx, count/memoryBatch, size*memoryBatch, func() error { return n.queue.PushBatch(ctx, batch...) })
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

// memoryResult is one line of these benchmarks.
type memoryResult struct {
	benchResult
	DuplexMBPerS float64 `json:"duplex_mb_per_s"`    // put: each way, both at once
	BatchedPerS  float64 `json:"batched_msgs_per_s"` // fifo: records pushed 64 at once
	Frames       uint64  `json:"frames"`             // that node 0 has sent
	Again        uint64  `json:"sent_again"`         // of these, again
	Mode         string  `json:"mode"`
	launch.Faults
}

func (b *memoryBench) result(ep *mcd.Endpoint, size int, h launch.Host) *memoryResult {
	p := (&bench{cluster: b.cluster}).parameters(ep)
	return &memoryResult{
		benchResult: benchResult{Schema: benchSchema, Bench: b.name, benchParameters: p, SizeBytes: size, Host: h},
		Mode:        b.cluster.Mode, Faults: b.cluster.Faults,
	}
}

// memoryColumns are the headings of what differs, and a column that one alone has.
var memoryColumns = map[string]struct {
	time, rate string
	own        func(*memoryResult) float64
	name       string
	digits     int
}{
	"put":  {"one way (us)", "puts/s", func(r *memoryResult) float64 { return r.DuplexMBPerS }, "duplex MB/s", 2},
	"get":  {time: "call (us)", rate: "gets/s"},
	"fifo": {"one way (us)", "records/s", func(r *memoryResult) float64 { return r.BatchedPerS }, "batched/s", 0},
	"amo":  {time: "call (us)", rate: "adds/s"},
}

// memoryTable writes results as they come.
type memoryTable struct {
	out    io.Writer
	json   bool
	headed bool
}

func (t *memoryTable) write(r *memoryResult) error {
	if t.json {
		return cli.WriteJSON(t.out, r)
	}
	c := memoryColumns[r.Bench]
	if !t.headed {
		t.headed = true
		own := ""
		if c.own != nil {
			own = fmt.Sprintf(" %12s", c.name)
		}
		faulty := r.Faults.String()
		if faulty != "" {
			faulty = ", " + faulty
		}
		_, err := fmt.Fprintf(t.out, "# rawlane bench %s: %s, %d nodes, %s, %v%s\n# Size %15s %10s %10s %10s %12s %12s%s %7s\n",
			r.Bench, r.Link, r.Nodes, r.Mode, r.Host, faulty, c.time, "p99", "min", "max", "MB/s", c.rate, own, "again")
		if err != nil {
			return err
		}
	}
	own := ""
	if c.own != nil {
		own = fmt.Sprintf(" %12.*f", c.digits, c.own(r))
	}
	_, err := fmt.Fprintf(t.out, "%-10d %11.2f %10.2f %10.2f %10.2f %12.2f %12.0f%s %7d\n",
		r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.MBPerS, r.MsgsPerS, own, r.Again)
	return err
}
