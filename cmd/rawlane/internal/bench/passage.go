package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// passages is a link that notes when the frames of a ping-pong pass it and its driver. It is
// switched on and off while the link runs; off, it notes nothing.
type passages struct {
	transport.Link
	stamper transport.Stamper

	waited atomic.Bool // since the last Poll

	mu    sync.Mutex // guards what follows
	on    bool
	woken time.Time // the last Wait that has returned
	came  arrival   // since the last Send
	last  departure
	out   [8]transport.SentStamp
}

// arrival is a unicast frame that has come.
type arrival struct {
	frames int             // how many have: of one the rest is known
	stamp  transport.Stamp // it passed the driver
	woken  time.Time       // a Wait returned for it; zero if nobody slept
	polled time.Time       // Poll returned it
}

// departure is a unicast frame that was sent.
type departure struct {
	frames int // how many were, since the last take
	number uint32
	stamp  transport.Stamp
	after  arrival // that it answers
}

var _ transport.Wrapper = (*passages)(nil)

// newPassages wraps a link. Links whose frames pass no driver are refused.
func newPassages(inner transport.Link) (*passages, error) {
	stamper, ok := transport.As[transport.Stamper](inner)
	if !ok {
		return nil, fmt.Errorf("--breakdown: %s does not say when frames pass its driver: %w "+
			"(--link packet, ring and udp do, on Linux)", transport.Name(inner), transport.ErrNotSupported)
	}
	return &passages{Link: inner, stamper: stamper}, nil
}

// Unwrap implements transport.Wrapper.
func (p *passages) Unwrap() transport.Link { return p.Link }

// note switches notes on or off.
func (p *passages) note(on bool) error {
	if err := p.stamper.StampFrames(on); err != nil {
		return fmt.Errorf("--breakdown: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.woken, p.came, p.last = on, time.Time{}, arrival{}, departure{}
	return nil
}

// take returns the last frame that was sent, and what has come since.
func (p *passages) take() (sent departure, came arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.collect(true)
	sent, came = p.last, p.came
	p.last.frames = 0
	return sent, came
}

// collect takes the stamps that have come: of the last departure, or of other frames. A NIC's may
// come when the next frame is under way, and then is not used. The caller holds mu.
func (p *passages) collect(ofLast bool) {
	for _, s := range p.out[:p.stamper.SentStamps(p.out[:])] {
		switch {
		case !s.Software.IsZero() && ofLast:
			p.last.number, p.last.stamp.Software = s.Frame, s.Software
		case !s.Hardware.IsZero() && s.Frame == p.last.number:
			p.last.stamp.Hardware = s.Hardware
		}
	}
}

// Send implements transport.Link.
func (p *passages) Send(frames []transport.Frame) (int, error) {
	sent := unicast(frames)
	if sent > 0 {
		p.mu.Lock()
		if p.on {
			p.last = departure{frames: p.last.frames + sent, after: p.came}
			p.came = arrival{}
		}
		p.mu.Unlock()
	}
	n, err := p.Link.Send(frames)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on {
		p.collect(sent > 0)
	}
	return n, err
}

// Poll implements transport.Link.
func (p *passages) Poll(frames []transport.Frame) (int, error) {
	n, err := p.Link.Poll(frames)
	waited := p.waited.Load() && p.waited.Swap(false)
	if n == 0 {
		if waited { // for nothing: a stamp may have ended that, and would end the next one
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.on {
				p.collect(true)
			}
		}
		return n, err
	}
	polled := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on {
		for i := range frames[:n] {
			if frames[i].Dst.IsMulticast() {
				continue
			}
			p.came = arrival{
				frames: p.came.frames + 1, stamp: p.stamper.ReceivedStamp(i), woken: p.woken, polled: polled,
			}
		}
	}
	return n, err
}

// Wait implements transport.Link.
func (p *passages) Wait(ctx context.Context) error {
	err := p.Link.Wait(ctx)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = now
	p.waited.Store(true)
	return err
}

// unicast counts frames for single stations.
func unicast(frames []transport.Frame) (n int) {
	for i := range frames {
		if !frames[i].Dst.IsMulticast() {
			n++
		}
	}
	return n
}
