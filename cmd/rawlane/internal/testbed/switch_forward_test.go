package testbed

import (
	"context"
	"errors"
	"testing"

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
