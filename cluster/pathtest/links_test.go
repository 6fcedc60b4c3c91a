package pathtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func by(vids ...transport.VID) (tags []transport.OptionalTag) {
	for _, vid := range vids {
		tags = append(tags, transport.Tagged(transport.Tag{VID: vid}))
	}
	return tags
}

// open makes an endpoint of each link: node 0, 1, ... Those of a second table entry with an address are left out of the table.
func open(t *testing.T, links ...transport.Link) []*mcd.Endpoint {
	t.Helper()
	var nodes []mcd.Node
	for k, l := range links {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
	}
	var es []*mcd.Endpoint
	for k, l := range links {
		es = append(es, openOne(t, mcd.NodeID(k), nodes, l))
	}
	return es
}

func openOne(t *testing.T, k mcd.NodeID, nodes []mcd.Node, l transport.Link) *mcd.Endpoint {
	t.Helper()
	e, err := mcd.Open(mcd.Config{Node: k, Nodes: nodes, Spin: -1}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// switched makes links on one switch.
func switched(t *testing.T, n int) (links []transport.Link) {
	t.Helper()
	all, err := fabric.Links(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		links = append(links, l)
	}
	return links
}

// byPorts makes an endpoint at each of some ports of one switch.
func byPorts(t *testing.T, ports ...fabric.Port) []*mcd.Endpoint {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sw := f.AddSwitch("")
	var links []transport.Link
	for _, p := range ports {
		l, err := f.Attach(sw, fabric.Station{Port: p})
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	return open(t, links...)
}

// twoTops makes a link on each of two leaves, and two paths between them, by VID 1 and by VID 2; the cables of the latter are returned.
func twoTops(t *testing.T) (links []transport.Link, second []*fabric.Cable) {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	leaves := []*fabric.Switch{f.AddSwitch("leaf 0"), f.AddSwitch("leaf 1")}
	for vid := transport.VID(1); vid <= 2; vid++ {
		top := f.AddSwitch(fmt.Sprintf("top %d", vid))
		for _, leaf := range leaves {
			c, err := f.Connect(leaf, top, fabric.Trunk(vid))
			if err != nil {
				t.Fatal(err)
			}
			if vid == 2 {
				second = append(second, c)
			}
		}
	}
	for _, leaf := range leaves {
		l, err := f.Attach(leaf, fabric.Station{})
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	return links, second
}

// suffering puts a fault around a link, for the frames that match.
func suffering(t *testing.T, l transport.Link, cfg fault.Config) transport.Link {
	t.Helper()
	f, err := fault.New(l, rand.New(rand.NewPCG(1, 0)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stoodStill is a link that has lost the first n of the frames that match. lost is how many.
func stoodStill(
	t *testing.T, l transport.Link, n int, match func(*transport.Frame) bool,
) (stalled transport.Link, lost *int) {
	t.Helper()
	lost = new(int)
	first := func(f *transport.Frame) bool {
		if *lost == n || !match(f) {
			return false
		}
		*lost++
		return true
	}
	return suffering(t, l, fault.Config{Loss: 1, Match: first}), lost
}

func ofVID(vid transport.VID) func(*transport.Frame) bool {
	return func(f *transport.Frame) bool { return f.Tagged && f.Tag.VID == vid }
}

// looped is a link to a network with a loop: what it broadcasts comes back.
type looped struct {
	transport.Link
	mu   sync.Mutex
	back []transport.Frame
}

func (l *looped) Unwrap() transport.Link { return l.Link }

func (l *looped) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	for _, f := range frames {
		if f.Dst == transport.Broadcast && f.Tag.VID == 2 {
			f.Payload = bytes.Clone(f.Payload)
			l.back = append(l.back, f, f, f)
		}
	}
	l.mu.Unlock()
	return l.Link.Send(frames)
}

func (l *looped) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(frames) && len(l.back) > 0 {
		frames[n], l.back = l.back[0], l.back[1:]
		n++
	}
	return n, err
}

// both is a link to two networks, as one: stations of the one and the other may have one address.
type both struct {
	transport.Link
	other transport.Link
}

func (l *both) Send(frames []transport.Frame) (int, error) {
	if n, err := l.other.Send(frames); err != nil {
		return n, err
	}
	return l.Link.Send(frames)
}

func (l *both) Poll(frames []transport.Frame) (int, error) {
	n, _ := l.other.Poll(frames)
	more, err := l.Link.Poll(frames[n:])
	return n + more, err
}

func (l *both) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := l.Link.Wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (l *both) Close() error {
	return errors.Join(l.Link.Close(), l.other.Close())
}

// waking is a link that looks for frames now and then, as those that come back wake nobody.
type waking struct{ transport.Link }

func (l waking) Unwrap() transport.Link { return l.Link }

func (l waking) Wait(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := l.Link.Wait(soon); err != nil && soon.Err() == nil {
		return err
	}
	return ctx.Err()
}
