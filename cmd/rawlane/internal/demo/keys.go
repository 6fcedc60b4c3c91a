package demo

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/rawlane/rawlane/transport"
)

// tap keeps the last frame that a link has sent, as a station on its segment can.
type tap struct {
	transport.Link
	mu   sync.Mutex // guards last
	last transport.Frame
}

// Send keeps the last frame, and sends all.
func (l *tap) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	if len(frames) > 0 {
		l.last = frames[len(frames)-1]
		l.last.Payload, l.last.Headroom = slices.Clone(l.last.Payload), nil
	}
	l.mu.Unlock()
	return l.Link.Send(frames)
}

// Unwrap returns the link itself, for its abilities.
func (l *tap) Unwrap() transport.Link { return l.Link }

func (l *tap) frame() transport.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// forge plays a stranger on the network: from node 3's place it sends a recorded frame of node 0
// again, and the same one changed. It needs keys; without, there is nothing to show.
func (t *tour) forge(ctx context.Context) error {
	if t.keyFile == "" {
		return nil
	}
	if _, err := t.deliver(ctx, 0, 1, []byte("pay 10")); err != nil {
		return err
	}
	recorded := t.tap.frame()
	changed := recorded
	changed.Payload = slices.Clone(recorded.Payload)
	changed.Payload[len(changed.Payload)-1] ^= 1
	before := t.nodes[1].Counters()
	if _, err := t.net.Links[3].Send([]transport.Frame{recorded, changed}); err != nil {
		return err
	}
	// It shows the switches where node 0 really is, and comes behind them.
	if err := t.ports[0].Broadcast(ctx, tourPort, []byte("here I am")); err != nil {
		return err
	}
	for k := 1; k < len(t.nodes); k++ {
		if _, err := t.receive(ctx, k); err != nil {
			return err
		}
	}
	refused := func() (replayed, forged uint64) {
		c := t.nodes[1].Counters()
		return c.DropReplay - before.DropReplay, c.DropTag - before.DropTag
	}
	for replayed, forged := refused(); replayed+forged < 2; replayed, forged = refused() {
		if ctx.Err() != nil {
			return fmt.Errorf("node 1 refused %d recorded and %d changed frames, want one each", replayed, forged)
		}
		t.nodes[1].Progress()
		runtime.Gosched()
	}
	replayed, forged := refused()
	t.say("\nKeys:      frames are authenticated with %s. A stranger sent a recorded frame of node 0 again,", t.keyFile)
	t.say("           and changed: node 1 counted drop_replay %d and drop_tag %d, and delivered neither",
		replayed, forged)
	return nil
}
