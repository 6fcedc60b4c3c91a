package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// pingTimeout is the least time after which a ping without an echo counts as lost.
	pingTimeout = 100 * time.Millisecond
	// pingLosses in a row end the benchmark: the other node is down.
	pingLosses = 50
	// rateBatch is how many messages are posted in one call.
	rateBatch = 32
	// warmUp is the number of iterations that do not count for each one that does.
	warmUp = 0.1
	// settle is the least time of the latency's warm-up: before, the system may run two spinning
	// threads on one core.
	settle = 20 * time.Millisecond
)

// client is node 0. It measures, and the servers on the other nodes answer.
type client struct {
	ep    *mcd.Endpoint
	x     *cluster.Exchanger
	ping  *mcd.Port
	peers []mcd.NodeID
	asked time.Time // when all were asked last
}

// openClient opens the ports of node 0 and waits until the other nodes are ready.
func openClient(ctx context.Context, e *mcd.Endpoint) (*client, error) {
	c := &client{ep: e}
	for _, n := range e.Nodes() {
		if n.ID != e.Node() {
			c.peers = append(c.peers, n.ID)
		}
	}
	var err error
	if c.x, err = cluster.OpenExchanger(e, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout}); err != nil {
		return nil, err
	}
	if c.ping, err = e.OpenPort(benchPing, mcd.PortOptions{}); err != nil {
		return nil, err
	}
	return c, c.askAll(ctx, askReady)
}

// keepAlive tells the other nodes now and then that node 0 is there: the idle ones would give up.
// It is called between measurements, at the time now.
func (c *client) keepAlive(ctx context.Context, now time.Time) error {
	if now.Sub(c.asked) < launch.Silence/6 {
		return nil
	}
	return c.askAll(ctx, askReady)
}

func (c *client) askAll(ctx context.Context, code byte) error {
	c.asked = time.Now()
	for _, p := range c.peers {
		if _, err := c.ask(ctx, p, code); err != nil {
			return err
		}
	}
	return nil
}

// end tells the others that the benchmark is over.
func (c *client) end(ctx context.Context) error {
	return launch.Dismiss(ctx, c.x, c.peers, []byte{askEnd})
}

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

// latency measures half of round trips, with each of the other nodes in turn.
func (c *client) latency(ctx context.Context, r *benchResult) error {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	warm := int(float64(r.Iters) * warmUp)
	var allocs float64
	start := time.Now()
	for _, peer := range c.peers {
		p := &pinger{port: c.ping, to: mcd.Addr{Node: peer, Port: benchPing}, b: make([]byte, r.SizeBytes)}
		for i, begun := 0, time.Now(); i < warm || time.Since(begun) < settle; i++ {
			if _, err := p.round(ctx); err != nil && !errors.Is(err, errLost) {
				return err
			}
		}
		p.lost = 0
		since := allocations()
		for i := range r.Iters {
			if i%1000 == 0 {
				if err := c.keepAlive(ctx, time.Now()); err != nil {
					return err
				}
			}
			half, err := p.round(ctx)
			switch {
			case errors.Is(err, errLost):
			case err != nil:
				return err
			default:
				_ = h.RecordValue(int64(half)) // below pingTimeout, and so in range
			}
		}
		allocs += since()
		p.forget()
		r.Lost += p.lost
	}
	elapsed := time.Since(start)
	if h.TotalCount() == 0 {
		return fmt.Errorf("all %d messages of %d bytes were lost", r.Lost, r.SizeBytes)
	}
	r.recordPingPong(h, elapsed)
	r.Allocs = allocs / float64(r.Iters*len(c.peers))
	return nil
}

// errLost means that a ping or its echo did not arrive.
var errLost = errors.New("lost")

// pinger exchanges one message after the other with one node.
type pinger struct {
	port   *mcd.Port
	to     mcd.Addr
	b      []byte
	seq    uint32
	lost   uint64
	inARow int

	ctx    context.Context // renewed now and then: to make one takes longer than a round
	cancel context.CancelFunc
	made   time.Time
}

// round returns half of the time that a message takes there and back.
func (p *pinger) round(ctx context.Context) (half time.Duration, err error) {
	start := time.Now()
	p.begin(ctx, start)
	if err := p.port.Send(p.ctx, p.to, p.b); err != nil {
		return 0, p.fault(ctx, err)
	}
	if err := p.await(ctx); err != nil {
		return 0, err
	}
	return time.Since(start) / 2, nil
}

// begin makes the next message, at the time now.
func (p *pinger) begin(ctx context.Context, now time.Time) {
	if p.cancel == nil || now.Sub(p.made) > pingTimeout {
		p.forget()
		p.ctx, p.cancel = context.WithTimeout(ctx, 2*pingTimeout)
		p.made = now
	}
	p.seq++
	p.stamp()
}

// await waits for the message's echo.
func (p *pinger) await(ctx context.Context) error {
	for {
		n, from, err := p.port.Recv(p.ctx, p.b)
		if err != nil {
			return p.fault(ctx, err)
		}
		if from == p.to && n == len(p.b) && p.stamped() {
			p.inARow = 0
			return nil
		}
		p.stamp() // a late echo of an earlier ping has overwritten it
	}
}

// stamp numbers the message, if it is long enough, so that a late echo is not taken for another.
func (p *pinger) stamp() {
	if len(p.b) >= 4 {
		binary.BigEndian.PutUint32(p.b, p.seq)
	}
}

func (p *pinger) stamped() bool { return len(p.b) < 4 || binary.BigEndian.Uint32(p.b) == p.seq }

func (p *pinger) forget() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

// fault counts a loss; too many of them are an error that names the node.
func (p *pinger) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p.forget()
	p.lost++
	if p.inARow++; p.inARow == pingLosses {
		return fmt.Errorf("node %d has not answered %d messages in a row (has it ended, or is its cable out?)",
			p.to.Node, pingLosses)
	}
	return errLost
}

// stream sends messages from node 0 to node 1, in batches.
type stream struct {
	c     *client
	port  *mcd.Port
	descs []*mcd.SendDesc
}

func (c *client) openStream(size int) (*stream, error) {
	port, err := c.ep.OpenPort(benchData, mcd.PortOptions{})
	if err != nil {
		return nil, err
	}
	s := &stream{c: c, port: port}
	b := make([]byte, size)
	for range rateBatch {
		s.descs = append(s.descs, &mcd.SendDesc{
			To: mcd.To(mcd.Addr{Node: c.peers[0], Port: benchData}), Payload: b,
		})
	}
	return s, nil
}

// send sends n messages; the link has taken them when it returns.
func (s *stream) send(ctx context.Context, n int) error {
	for n > 0 {
		batch := s.descs[:min(n, len(s.descs))]
		if err := s.port.PostSend(batch...); err != nil {
			return err
		}
		for _, d := range batch {
			if err := d.Wait(ctx); err != nil {
				return err
			}
		}
		n -= len(batch)
	}
	return nil
}

// received asks how many messages have arrived since the last reset. Messages of one sender keep
// their order, so the answer counts all earlier ones that were not lost.
func (s *stream) received(ctx context.Context) (uint64, error) {
	return s.c.ask(ctx, s.c.peers[0], askCount)
}

func (s *stream) reset(ctx context.Context) error {
	_, err := s.c.ask(ctx, s.c.peers[0], askReset)
	return err
}

// bandwidth sends windows of messages to node 1, which answers each window, and counts the messages
// that arrive.
func (c *client) bandwidth(ctx context.Context, r *benchResult) error {
	s, err := c.openStream(r.SizeBytes)
	if err != nil {
		return err
	}
	defer func() { _ = s.port.Close() }()
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	window := func() error {
		if err := s.send(ctx, r.Window); err != nil {
			return err
		}
		_, err := s.received(ctx)
		return err
	}
	windows := max(1, r.Iters/r.Window)
	for range int(float64(windows)*warmUp) + 1 {
		if err := window(); err != nil {
			return err
		}
	}
	if err := s.reset(ctx); err != nil {
		return err
	}
	since := allocations()
	start := time.Now()
	for range windows {
		begun := time.Now()
		if err := errors.Join(c.keepAlive(ctx, begun), window()); err != nil {
			return err
		}
		_ = h.RecordValue(int64(time.Since(begun)) / int64(r.Window)) // an hour's window would be an error before
	}
	elapsed := time.Since(start)
	sent := uint64(windows * r.Window)
	r.Allocs = since() / float64(sent)
	return r.finish(ctx, s, h, sent, elapsed, elapsed)
}

// rate sends to node 1 as fast as the link takes messages, and counts those that arrive.
func (c *client) rate(ctx context.Context, r *benchResult) error {
	s, err := c.openStream(r.SizeBytes)
	if err != nil {
		return err
	}
	defer func() { _ = s.port.Close() }()
	if err := s.send(ctx, int(float64(r.Iters)*warmUp)); err != nil {
		return err
	}
	if err := s.reset(ctx); err != nil {
		return err
	}
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	since := allocations()
	start := time.Now()
	for left := r.Iters; left > 0; {
		n := min(left, r.Batch)
		begun := time.Now()
		if err := c.keepAlive(ctx, begun); err != nil {
			return err
		}
		if err := s.send(ctx, n); err != nil {
			return err
		}
		_ = h.RecordValue(int64(time.Since(begun)) / int64(n)) // a minute's batch would be an error before
		left -= n
	}
	sending := time.Since(start)
	r.Allocs = since() / float64(r.Iters)
	if _, err := s.received(ctx); err != nil {
		return err
	}
	return r.finish(ctx, s, h, uint64(r.Iters), sending, time.Since(start))
}

// finish fills in the rates of a stream.
func (r *benchResult) finish(
	ctx context.Context, s *stream, h *hdrhistogram.Histogram, sent uint64, sending, arriving time.Duration,
) error {
	received, err := s.received(ctx)
	if err != nil {
		return err
	}
	if received > sent {
		return fmt.Errorf("%d messages sent and %d received", sent, received)
	}
	r.record(h)
	r.Lost = sent - received
	r.TxPerS = float64(sent) / sending.Seconds()
	r.MsgsPerS = float64(received) / arriving.Seconds()
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
	return nil
}
