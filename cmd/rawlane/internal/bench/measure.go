package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

const (
	// rateBatch is how many messages are posted in one call.
	rateBatch = 32
	// warmUpShare is the number of iterations that count for each one that warms up.
	warmUpShare = 10
)

// maxTime is the longest time that is counted: 1 GiB at 300 KB a second.
const maxTime = time.Hour

// newTimes returns a histogram of times in ns.
func newTimes() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(maxTime), 3) }

// allocations counts the allocations of this process from now on.
func allocations() (since func() float64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.Mallocs
	return func() float64 {
		runtime.ReadMemStats(&m)
		return float64(m.Mallocs - before)
	}
}

// unchecked is the check of operations whose result is looked at when all are over.
func unchecked() error { return nil }

// timed runs an operation again and again, after some that do not count. It returns the time of
// each, divided by the messages in it, and that of all. What is done behind each, a check for
// instance, is not part of its time.
func timed(
	warm, iters int, messages int64, do, behind func() error,
) (h *hdrhistogram.Histogram, all time.Duration, err error) {
	h = newTimes()
	begun := time.Now()
	for i := range warm + iters {
		if i == warm {
			h.Reset()
			begun = time.Now()
		}
		start := time.Now()
		if err := do(); err != nil {
			return nil, 0, err
		}
		_ = h.RecordValue(int64(time.Since(start)) / messages)
		if err := behind(); err != nil {
			return nil, 0, err
		}
	}
	return h, time.Since(begun), nil
}

// client is node 0. It measures, and the servers on the other nodes answer.
type client struct {
	ep         *mcd.Endpoint
	x          *cluster.Exchanger
	ping, data *mcd.Port
	link       *passages // of --breakdown; else nil
	peers      []mcd.NodeID
	echoes     map[mcd.NodeID]string // where each peer echoes over IP
	asked      time.Time             // when all were asked last
}

// openClient opens the ports of node 0 and waits until the other nodes are ready.
func openClient(ctx context.Context, ep *mcd.Endpoint) (c *client, err error) {
	c = &client{ep: ep, echoes: make(map[mcd.NodeID]string), asked: time.Now()}
	if c.ping, err = ep.OpenPort(benchPing, mcd.PortOptions{}); err != nil {
		return nil, err
	}
	if c.data, err = ep.OpenPort(benchData, mcd.PortOptions{}); err != nil {
		return nil, err
	}
	if c.x, err = cluster.OpenExchanger(ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout}); err != nil {
		return nil, err
	}
	echoes, err := c.x.Gather(ctx, ep.Node(), nil)
	if err != nil {
		return nil, err
	}
	for i, n := range ep.Nodes() {
		if n.ID != ep.Node() {
			c.peers = append(c.peers, n.ID)
			c.echoes[n.ID] = string(echoes[i])
		}
	}
	return c, nil
}

// ask asks a node how many messages have arrived there. Messages of one sender keep their order,
// so the answer counts all earlier ones that were not lost.
func (c *client) ask(ctx context.Context, node mcd.NodeID) (arrived uint64, err error) {
	b, err := c.x.Ask(ctx, node, []byte{askCount})
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("node %d: an answer of %d bytes (do all nodes run the same program?)", node, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// end tells the other nodes that the benchmark is over.
func (c *client) end(ctx context.Context) error {
	return launch.Dismiss(ctx, c.x, c.peers, []byte{askEnd})
}

// keepAlive tells the other nodes now and then that node 0 is there: the idle ones would give up.
// It is called between measurements, which do not look at ctx where nothing is waited for, and
// returns its error.
func (c *client) keepAlive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if time.Since(c.asked) < launch.Silence/6 {
		return nil
	}
	c.asked = time.Now()
	for _, p := range c.peers {
		if _, err := c.ask(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// repeat measures n times. A lost message is no error: the pinger counts it.
func (c *client) repeat(ctx context.Context, n int, measure func(context.Context) error) error {
	lost := false // which takes long
	for i := range n {
		if i%100 == 0 || lost {
			if err := c.keepAlive(ctx); err != nil {
				return err
			}
		}
		err := measure(ctx)
		if lost = errors.Is(err, errLost); err != nil && !lost {
			return err
		}
	}
	return nil
}

// latency measures half of round trips, with each of the other nodes in turn.
func (c *client) latency(ctx context.Context, r *result) error {
	h := newTimes()
	var elapsed time.Duration
	for _, peer := range c.peers {
		p := c.pinger(peer, r.SizeBytes)
		if err := c.warmUp(ctx, p, r.Iters/warmUpShare); err != nil {
			return err
		}
		since, start := allocations(), time.Now()
		err := c.repeat(ctx, r.Iters, func(ctx context.Context) error {
			half, err := p.round(ctx)
			if err == nil {
				_ = h.RecordValue(int64(half))
			}
			return err
		})
		p.forget()
		if err != nil {
			return err
		}
		elapsed += time.Since(start)
		r.Allocs += since() / float64(r.Iters*len(c.peers))
		r.Lost += p.lost
	}
	if h.TotalCount() == 0 {
		return fmt.Errorf("all %d messages of %d bytes were lost", r.Lost, r.SizeBytes)
	}
	r.recordPingPong(h, elapsed)
	return nil
}

// batch is messages to node 1 that go to the link in one call.
type batch struct {
	data    *mcd.Port
	descs   []*mcd.SendDesc
	inPlace [][]byte // the messages, behind Headroom bytes; nil: they are copied
}

// batch makes the messages of a result's batches.
func (c *client) batch(r *result) *batch {
	size := c.ep.Headroom() + r.SizeBytes
	b := &batch{data: c.data, descs: make([]*mcd.SendDesc, r.Batch)}
	to, payload := mcd.To(mcd.Addr{Node: c.peers[0], Port: benchData}), make([]byte, r.SizeBytes)
	for i := range b.descs {
		b.descs[i] = &mcd.SendDesc{To: to, Payload: payload}
	}
	if r.InPlace { // side by side, as one piece to the kernel
		b.inPlace = slices.Collect(slices.Chunk(make([]byte, r.Batch*size), size))
	}
	return b
}

// send sends n messages in batches; the link has taken them when it returns.
func (b *batch) send(ctx context.Context, n int) error {
	for n > 0 {
		sent, err := b.sendOnce(ctx, min(n, len(b.descs)))
		if err != nil {
			return err
		}
		n -= sent
	}
	return nil
}

// sendOnce sends up to n messages of a batch, and returns how many the link has taken. In place,
// the first one that the link has no room for is posted, which waits for some.
func (b *batch) sendOnce(ctx context.Context, n int) (sent int, err error) {
	if b.inPlace != nil {
		sent, err = b.data.TrySendInPlace(0, b.descs[0].To, b.inPlace[:n]...)
		if !errors.Is(err, transport.ErrBusy) {
			return sent, err
		}
		if sent > 0 {
			return sent, nil
		}
		n = 1
	}
	if err := b.data.PostSend(b.descs[:n]...); err != nil {
		return 0, err
	}
	for _, d := range b.descs[:n] {
		if err := d.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// stream sends n messages, a batch at a time, each of which may take long on a slow link, and
// records what a message of a batch takes.
func (c *client) stream(ctx context.Context, h *hdrhistogram.Histogram, b *batch, n int) error {
	for n > 0 {
		if err := c.keepAlive(ctx); err != nil {
			return err
		}
		some, begun := min(n, len(b.descs)), time.Now()
		if err := b.send(ctx, some); err != nil {
			return err
		}
		_ = h.RecordValue(int64(time.Since(begun)) / int64(some))
		n -= some
	}
	return nil
}

// bandwidth sends windows of messages to node 1, which answers each window, and counts the messages
// that arrive.
func (c *client) bandwidth(ctx context.Context, r *result) error {
	windows := max(1, r.Iters/r.Window)
	r.Iters, r.Batch = windows*r.Window, min(r.Batch, r.Window)
	h, b := newTimes(), c.batch(r)
	var arrived uint64
	window := func(ctx context.Context) (err error) {
		if err = c.keepAlive(ctx); err != nil { // a hundred windows may take long on a slow link
			return err
		}
		start := time.Now()
		if err = b.send(ctx, r.Window); err == nil {
			arrived, err = c.ask(ctx, c.peers[0])
		}
		_ = h.RecordValue(int64(time.Since(start)) / int64(r.Window))
		return err
	}
	if err := c.repeat(ctx, windows/warmUpShare+1, window); err != nil {
		return err
	}
	h.Reset()
	before, since, start := arrived, allocations(), time.Now()
	if err := c.repeat(ctx, windows, window); err != nil {
		return err
	}
	elapsed := time.Since(start)
	sent := uint64(r.Iters)
	r.Allocs = since() / float64(sent)
	return r.recordStream(h, sent, arrived-before, elapsed, elapsed)
}

// rate sends to node 1 as fast as the link takes messages, and counts those that arrive.
func (c *client) rate(ctx context.Context, r *result) error {
	r.Batch = min(r.Batch, r.Iters)
	h, b := newTimes(), c.batch(r)
	if err := c.stream(ctx, h, b, r.Iters/warmUpShare); err != nil {
		return err
	}
	h.Reset()
	before, err := c.ask(ctx, c.peers[0])
	if err != nil {
		return err
	}
	since, start := allocations(), time.Now()
	if err := c.stream(ctx, h, b, r.Iters); err != nil {
		return err
	}
	sending := time.Since(start)
	r.Allocs = since() / float64(r.Iters)
	arrived, err := c.ask(ctx, c.peers[0])
	if err != nil {
		return err
	}
	return r.recordStream(h, uint64(r.Iters), arrived-before, sending, time.Since(start))
}
