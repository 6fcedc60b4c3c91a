package pathtest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// answer is a probe that came back: answered, or of itself.
type answer struct {
	answered   bool
	from       mcd.NodeID
	src        transport.MAC
	instance   uint32
	seen, came transport.OptionalTag
}

// collector sends probes, and keeps what comes back for each.
type collector struct {
	ep    *mcd.Endpoint
	limit time.Duration // for which room on a link is awaited
	stop  func()

	mu   sync.Mutex // guards what follows
	got  map[uint32][]answer
	news chan struct{} // of capacity 1: something has come
}

func collect(ep *mcd.Endpoint, o Options) *collector {
	c := &collector{ep: ep, limit: o.Timeout, got: make(map[uint32][]answer), news: make(chan struct{}, 1)}
	c.stop = ep.WatchProbes(c.hear)
	return c
}

// hear is called by whoever polls.
func (c *collector) hear(p *mcd.Probe) {
	own := p.From == c.ep.Node()
	if !p.Reply && !own {
		return
	}
	c.mu.Lock()
	c.got[p.Number] = append(c.got[p.Number], answer{p.Reply, p.From, p.Src, p.Incarnation, p.PeerReceivedTag, p.ReceivedTag})
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default: // who waits will look at this, too
	}
}

// send sends a probe, and waits for room on the link. Where there is none for long, as on a link whose other end takes no frames of that
// size, the probe counts as sent: it is not answered.
func (c *collector) send(ctx context.Context, to mcd.Path, o mcd.ProbeOptions) (number uint32, err error) {
	for start := clock.Now(); ; {
		number, err = c.ep.TryProbe(to, o)
		switch {
		case !errors.Is(err, transport.ErrBusy):
			return number, err
		case ctx.Err() != nil:
			return number, ctx.Err()
		case clock.Now().Sub(start) > c.limit:
			return number, nil
		}
		c.ep.Progress()
		runtime.Gosched()
	}
}

// answers returns what has come back of a probe.
func (c *collector) answers(number uint32) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[number]
}

// awaitSpins is how often await polls before it sleeps: for some 100 µs, in which an answer has come if it was not lost.
const awaitSpins = 200

// await returns when each of the probes was answered, or a time is over, or ctx has ended: then with its error.
func (c *collector) await(ctx context.Context, limit time.Duration, numbers ...uint32) error {
	for range awaitSpins {
		if c.all(numbers) {
			return nil
		}
		c.ep.Progress()
		runtime.Gosched()
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for !c.all(numbers) {
		select {
		case <-c.news:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// all reports whether each of the probes was answered.
func (c *collector) all(numbers []uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(numbers, func(n uint32) bool { return len(c.got[n]) == 0 })
}

// sleep lets a time pass, in which more may come.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
