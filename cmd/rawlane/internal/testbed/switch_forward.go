package testbed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// switchBatch is how many frames are taken from a port at a time.
const switchBatch = 64

// downInterval is between two looks at whether the interface of a port is up again.
const downInterval = 100 * time.Millisecond

// forwarder drives the switch core with real links. A goroutine per port polls it and forwards.
type forwarder struct {
	ports []*switchPort
	say   func(format string, args ...any) // tells the user

	mu      sync.Mutex // guards what follows
	sw      *l2switch.Switch
	foreign uint64 // frames with a tag of another kind than 802.1Q's, which were dropped
}

// switchPort is an interface, the kind of its port, its link, and what its goroutine needs.
type switchPort struct {
	name    string
	kind    l2switch.Port
	link    transport.Link
	dropped atomic.Uint64 // on the way out

	in     []transport.Frame
	egress []l2switch.Egress
	out    [][]transport.Frame // per port
}

func openForwarder(
	ports []*switchPort, cfg l2switch.Config, say func(format string, args ...any),
) (*forwarder, error) {
	s := &forwarder{sw: l2switch.New(cfg), say: say}
	for _, p := range ports {
		_, err := s.sw.AddPort(p.kind)
		if err == nil {
			p.link, err = ring.Open(p.name, ring.Config{EtherType: transport.EtherTypeAny, Promiscuous: true})
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		p.in, p.out = make([]transport.Frame, switchBatch), make([][]transport.Frame, len(ports))
		s.ports = append(s.ports, p)
	}
	return s, nil
}

// run forwards until ctx ends or a port fails.
func (s *forwarder) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for number := range s.ports {
		running.Go(func() {
			if err := s.serve(ctx, number); ctx.Err() == nil {
				stop(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // it was told to end
}

// serve forwards frames from one port, until the error that it returns. A port that is flooded
// never waits, and ends with ctx all the same.
func (s *forwarder) serve(ctx context.Context, number int) error {
	p := s.ports[number]
	for ctx.Err() == nil {
		n, err := p.link.Poll(p.in)
		if err != nil {
			return err
		}
		if n > 0 {
			s.forward(number, p.in[:n])
			continue
		}
		if err := s.wait(ctx, number); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// wait waits for frames of a port. While its interface is down the port has no carrier: others go
// on, and what was behind it may turn up behind them.
func (s *forwarder) wait(ctx context.Context, number int) error {
	p := s.ports[number]
	err := p.link.Wait(ctx)
	if !errors.Is(err, transport.ErrInterfaceDown) {
		return err
	}
	s.setUp(number, false)
	for errors.Is(err, transport.ErrInterfaceDown) {
		look, cancel := context.WithTimeout(ctx, downInterval)
		if err = p.link.Wait(look); errors.Is(err, transport.ErrInterfaceDown) {
			<-look.Done()
		}
		cancel()
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil // it is up, and nothing has come
	}
	if err == nil {
		s.setUp(number, true)
	}
	return err
}

// setUp notes that the interface of a port went down or up, and says so.
func (s *forwarder) setUp(number int, up bool) {
	s.mu.Lock()
	s.sw.SetUp(number, up)
	s.mu.Unlock()
	state := "down"
	if up {
		state = "up again"
	}
	s.say("port %s is %s\n", s.ports[number].name, state)
}

// tagKinder is a link that tells the TPID of the frames of its last Poll, as package ring's do.
type tagKinder interface {
	TPID(i int) transport.EtherType
}

// forward sends the frames of a port to the ports that the switch says. Frames without room are
// dropped and counted. So are those whose first tag is not a C-tag (IEEE 802.1Q-2022 §9.5), such as
// 802.1ad's S-tag: its VID is of another space, and the links send C-tags alone.
func (s *forwarder) forward(number int, frames []transport.Frame) {
	p := s.ports[number]
	kinds, _ := p.link.(tagKinder)
	now := clock.Now()
	s.mu.Lock()
	for i := range frames {
		if kinds != nil && frames[i].Tagged && kinds.TPID(i) != transport.EtherTypeVLAN {
			s.foreign++
			continue
		}
		p.egress = s.sw.Forward(now, number, &frames[i], p.egress[:0])
		for _, e := range p.egress {
			f := frames[i]
			f.Tagged, f.Tag = e.Tagged, e.Tag
			p.out[e.Port] = append(p.out[e.Port], f)
		}
	}
	s.mu.Unlock()
	for to, batch := range p.out {
		s.ports[to].send(batch)
		p.out[to] = batch[:0]
	}
}

func (p *switchPort) send(batch []transport.Frame) {
	for len(batch) > 0 {
		n, err := p.link.Send(batch)
		batch = batch[n:]
		switch {
		case err == nil:
		case errors.Is(err, transport.ErrBusy):
			p.dropped.Add(uint64(len(batch)))
			return
		case len(batch) > 0: // refused, and counted by the link
			batch = batch[1:]
		}
	}
}

func (s *forwarder) counters() *switchCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &switchCounters{Switch: s.sw.Counters()}
	c.Switch.DroppedNotAccepted += s.foreign
	for _, p := range s.ports {
		c.Ports = append(c.Ports, portCounters{Name: p.name, Counters: p.link.Counters(), TxDropped: p.dropped.Load()})
	}
	return c
}

func (s *forwarder) close() error {
	var errs []error
	for _, p := range s.ports {
		errs = append(errs, p.link.Close())
	}
	return errors.Join(errs...)
}
