package testbed

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
)

// flood is a link on which there is always another frame, until nobody should poll it any more.
type flood struct {
	transport.Link
	polls int
}

func (f *flood) Poll(frames []transport.Frame) (int, error) {
	f.polls++
	if f.polls > 3 {
		return 0, errors.New("polled behind the end")
	}
	frames[0] = transport.Frame{Dst: transport.Broadcast, Src: transport.MAC{2, 5: 1}, EtherType: 0x0800}
	return 1, nil
}

func (*flood) Send(frames []transport.Frame) (int, error) { return len(frames), nil }

// A switch ends when it is told to, also where a port is flooded and its link never waits.
func TestForwarder_EndsUnderFlood(t *testing.T) {
	f := &forwarder{sw: l2switch.New(l2switch.Config{})}
	links := []*flood{{}, {}}
	for _, l := range links {
		p := &switchPort{link: l, in: make([]transport.Frame, 1), out: make([][]transport.Frame, len(links))}
		if _, err := f.sw.AddPort(p.kind); err != nil {
			t.Fatal(err)
		}
		f.ports = append(f.ports, p)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := f.run(ctx); err != nil {
		t.Error(err)
	}
	for k, l := range links {
		if l.polls > 1 {
			t.Errorf("port %d was polled %d times behind the end, want once at most", k, l.polls)
		}
	}
}

// tags is a link that takes frames in, and tells the TPIDs of those that it has handed out.
type tags struct {
	transport.Link
	tpids []transport.EtherType
	sent  []transport.Frame
}

func (l *tags) TPID(i int) transport.EtherType { return l.tpids[i] }
func (*tags) Counters() transport.Counters     { return transport.Counters{} }

func (l *tags) Send(frames []transport.Frame) (int, error) {
	l.sent = append(l.sent, frames...)
	return len(frames), nil
}

// A service tag's VID is no C-tag's: such a frame enters no VLAN by it, and does not leave with another
// TPID.
func TestForwarder_DropsServiceTags(t *testing.T) {
	f := &forwarder{sw: l2switch.New(l2switch.Config{})}
	var links []*tags
	for range 2 {
		l := &tags{tpids: []transport.EtherType{0, 0x8100, 0x88a8, 0x9100, 0x8100}}
		p := &switchPort{link: l, out: make([][]transport.Frame, 2)}
		if _, err := f.sw.AddPort(p.kind); err != nil {
			t.Fatal(err)
		}
		f.ports, links = append(f.ports, p), append(links, l)
	}
	frames := make([]transport.Frame, len(links[0].tpids))
	for i, tpid := range links[0].tpids {
		frames[i] = transport.Frame{Dst: transport.Broadcast, Src: transport.MAC{2, 5: 1}, EtherType: transport.EtherType(0x8000 + i)}
		if tpid != 0 {
			frames[i].Tagged, frames[i].Tag = true, transport.Tag{VID: 9}
		}
	}
	f.forward(0, frames)
	var passed []transport.EtherType
	for _, frame := range links[1].sent {
		passed = append(passed, frame.EtherType)
	}
	if want := []transport.EtherType{0x8000, 0x8001, 0x8004}; !slices.Equal(passed, want) {
		t.Errorf("passed: %x, want %x: those without a tag or with a C-tag", passed, want)
	}
	if c := f.counters(); c.Switch.DroppedNotAccepted != 2 || c.Switch.Received() != 5 {
		t.Errorf("%+v, want 2 frames that are not accepted, of 5", c.Switch)
	}
}

// cable is a link whose interface goes down and up, and that counts what it is given.
type cable struct {
	transport.Link
	down, closed atomic.Bool
	sent         atomic.Int64
}

func (*cable) Poll([]transport.Frame) (int, error) { return 0, nil }

func (c *cable) Send(frames []transport.Frame) (int, error) {
	c.sent.Add(int64(len(frames)))
	return len(frames), nil
}

func (c *cable) Wait(ctx context.Context) error {
	for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
		switch {
		case c.closed.Load():
			return transport.ErrNoInterface
		case c.down.Load():
			return transport.ErrInterfaceDown
		}
	}
	return ctx.Err()
}

// A port whose interface is down takes no part, and does when that is up again: the others go on, and reach by
// flooding what was behind it. One whose interface is removed ends the switch.
func TestForwarder_PortGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forwarder{sw: l2switch.New(l2switch.Config{}), say: func(string, ...any) {}}
		links := []*cable{{}, {}, {}}
		for _, l := range links {
			p := &switchPort{link: l, in: make([]transport.Frame, 1), out: make([][]transport.Frame, len(links))}
			if _, err := f.sw.AddPort(p.kind); err != nil {
				t.Fatal(err)
			}
			f.ports = append(f.ports, p)
		}
		ended := make(chan error, 1)
		go func() { ended <- f.run(t.Context()) }()
		host, other := transport.MAC{2, 5: 1}, transport.MAC{2, 5: 2}
		f.forward(0, []transport.Frame{{Dst: transport.Broadcast, Src: host, EtherType: 0x0800}})
		for _, c := range []struct {
			when string
			down bool
			want [3]int64 // frames to host that have left by each port
		}{
			{"all are up", false, [3]int64{1, 0, 0}},
			{"port 0 is down", true, [3]int64{0, 0, 1}},
			{"port 0 is up again", false, [3]int64{1, 0, 1}},
		} {
			links[0].down.Store(c.down)
			time.Sleep(time.Second)
			for _, l := range links {
				l.sent.Store(0)
			}
			f.forward(1, []transport.Frame{{Dst: host, Src: other, EtherType: 0x0800}})
			for k, l := range links {
				if l.sent.Load() != c.want[k] {
					t.Errorf("%s: port %d has sent %d frames, want %d", c.when, k, l.sent.Load(), c.want[k])
				}
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("the switch has ended: %v", err)
		default:
		}
		links[2].closed.Store(true)
		if err := <-ended; !errors.Is(err, transport.ErrNoInterface) {
			t.Errorf("without an interface: %v, want ErrNoInterface", err)
		}
	})
}
