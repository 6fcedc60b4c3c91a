package pathtest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// answer is a reply to a probe, or the probe itself, come back by a loop.
type answer struct {
	from        mcd.NodeID
	src         transport.MAC
	incarnation uint32
	// The tags with which the probe arrived at the peer, and the reply here.
	peerReceived, received transport.OptionalTag
}

// maxAnswers is how many answers to one probe are kept: more than any network with a loop or with
// doubles needs to be told as such.
const maxAnswers = 64

// collector sends probes and keeps the answers to each.
type collector struct {
	ep    *mcd.Endpoint
	limit time.Duration // how long to wait for an answer, and in send for room on a link
	stop  func()

	mu   sync.Mutex // guards what follows
	got  map[uint32][]answer
	last monotime.Time // when the last answer has come
	came chan struct{} // capacity 1: an answer has come
}

func collect(ep *mcd.Endpoint, o Options) *collector {
	c := &collector{ep: ep, limit: o.Timeout, got: make(map[uint32][]answer), came: make(chan struct{}, 1)}
	c.stop = ep.WatchProbes(c.hear)
	return c
}

// hear keeps an answer. The goroutine that polls calls it.
func (c *collector) hear(p *mcd.Probe) {
	own := p.From == c.ep.Node()
	if !p.Reply && !own {
		return
	}
	c.mu.Lock()
	got, asked := c.got[p.Number]
	if !asked || len(got) >= maxAnswers { // forged, or a storm
		c.mu.Unlock()
		return
	}
	a := answer{p.From, p.Src, p.Incarnation, p.PeerReceivedTag, p.ReceivedTag}
	c.got[p.Number], c.last = append(got, a), clock.Now()
	c.mu.Unlock()
	select {
	case c.came <- struct{}{}:
	default: // the waiting goroutine has not looked yet, and will see this answer too
	}
}

// send sends a probe, and waits for room on the link. If there is none for the limit, as on a link
// whose other end takes no frames of that size, the probe counts as sent and is not answered.
func (c *collector) send(ctx context.Context, to mcd.Path, o mcd.ProbeOptions) (number uint32, err error) {
	for start := clock.Now(); ; {
		number, err = c.ask(to, o)
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

// ask sends a probe, whose answers are kept from then on. The lock holds up hear until the number
// is known.
func (c *collector) ask(to mcd.Path, o mcd.ProbeOptions) (number uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number, err = c.ep.TryProbe(to, o); err == nil {
		c.got[number] = nil
	}
	return number, err
}

// answers returns the answers to a probe so far.
func (c *collector) answers(number uint32) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[number]
}

// isAnswered reports whether a probe was answered.
func (c *collector) isAnswered(number uint32) bool { return len(c.answers(number)) > 0 }

// awaitSpins is how often await polls before it sleeps: some 100 µs, in which most answers come.
const awaitSpins = 200

// await returns when each of the probes was answered, or after the limit, or with ctx's error.
func (c *collector) await(ctx context.Context, limit time.Duration, numbers ...uint32) error {
	for range awaitSpins {
		if c.all(numbers) {
			return nil
		}
		c.ep.Progress()
		runtime.Gosched()
	}
	over, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !c.all(numbers) {
		select {
		case <-c.came:
		case <-over.Done():
			return ctx.Err()
		}
	}
	return nil
}

// probe is a probe to send.
type probe struct {
	path    mcd.Path
	options mcd.ProbeOptions
}

// probeWindow is how many probes are under way at once: fewer than any receiver has room for.
const probeWindow = 32

// tries is how many probes a path gets before it counts as dead: some may be lost by chance.
const tries = 3

// answered sends probes, those without an answer again, and reports which were answered.
func (c *collector) answered(ctx context.Context, probes []probe) (answered []bool, err error) {
	answered = make([]bool, len(probes))
	for range tries {
		var asked []int // indexes in probes
		var numbers []uint32
		for i, p := range probes {
			if answered[i] {
				continue
			}
			n, err := c.send(ctx, p.path, p.options)
			if err != nil {
				return nil, err
			}
			asked, numbers = append(asked, i), append(numbers, n)
			if len(numbers)%probeWindow == 0 {
				if err := c.await(ctx, time.Millisecond, numbers[len(numbers)-probeWindow:]...); err != nil {
					return nil, err
				}
			}
		}
		if err := c.await(ctx, c.limit, numbers...); err != nil {
			return nil, err
		}
		for k, i := range asked {
			answered[i] = c.isAnswered(numbers[k])
		}
	}
	return answered, nil
}

// all reports whether each of the probes was answered.
func (c *collector) all(numbers []uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(numbers, func(n uint32) bool { return len(c.got[n]) == 0 })
}

// sleep waits for d, in which more answers may come.
func sleep(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err()
}
