package mcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
)

// distant opens node 0 and others whose frames take so long to arrive.
func distant(t *testing.T, cfg mcd.Config, delays ...time.Duration) []*mcd.Endpoint {
	links := switched(t, 1+len(delays))
	for k, d := range delays {
		links[1+k] = faulty(t, links[1+k], fault.Config{Delay: 1, DelayMin: d, DelayMax: d})
	}
	return wrapped(t, cfg, links...)
}

// silent is the delay of a node that does not answer while a test runs.
const silent = 24 * time.Hour

// A drain takes as long as the slowest path does, however slow that is and whatever the number of
// paths: the answer to any of its probes counts, also to the first one.
func TestDrain_TakesAsLongAsTheSlowestPath(t *testing.T) {
	for _, c := range []struct {
		name   string
		delays []time.Duration
		want   time.Duration
	}{
		{"an answer between two probes", []time.Duration{60 * time.Millisecond}, 60 * time.Millisecond},
		{"slower than probes are repeated", []time.Duration{300 * time.Millisecond}, 300 * time.Millisecond},
		{"a queue of seconds", []time.Duration{9 * time.Second}, 9 * time.Second},
		{"several, awaited at once", []time.Duration{300 * time.Millisecond, 400 * time.Millisecond, 200 * time.Millisecond}, 400 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			es := distant(t, mcd.Config{}, c.delays...)
			var nodes []mcd.NodeID
			for _, e := range es[1:] {
				nodes = append(nodes, e.Node())
			}
			begun := time.Now()
			err := es[0].Drain(limit(t), func() error { return nil }, nodes...)
			if took := time.Since(begun); err != nil || took != c.want {
				t.Errorf("%s: %v after %v, want %v", c.name, err, took, c.want)
			}
		})
	}
}

// A node that comes back after more rounds of probes than count is drained as any other.
func TestDrain_OutlivesALongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		far := faulty(t, links[1], fault.Config{Loss: 1})
		es := wrapped(t, mcd.Config{}, links[0], far)
		const gone = time.Minute
		time.AfterFunc(gone, func() { _ = far.SetConfig(fault.Config{}) })
		begun := time.Now()
		err := es[0].Drain(context.Background(), func() error { return nil }, 1)
		if took := time.Since(begun); err != nil || took < gone || took > gone+200*time.Millisecond {
			t.Errorf("%v after %v, want none after little more than %v", err, took, gone)
		}
	})
}

func TestDrain_EndsWithTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := distant(t, mcd.Config{}, silent)
		time.AfterFunc(time.Second, func() { _ = es[0].Close() })
		begun := time.Now()
		err := es[0].Drain(context.Background(), func() error { t.Error("the change was run"); return nil }, 1)
		if took := time.Since(begun); !errors.Is(err, mcd.ErrClosed) || took != time.Second {
			t.Errorf("%v after %v, want ErrClosed after 1s", err, took)
		}
	})
}

// call is one of a change's behind DrainEach.
type call struct {
	after time.Duration
	dst   []transport.MAC
	text  string // of the error
}

func (c call) String() string { return fmt.Sprintf("after %v: %v %q", c.after, c.dst, c.text) }

// drainEach drains addresses of node 0, and returns the calls of the change. In each of them,
// messages to its addresses are held.
func drainEach(t *testing.T, es []*mcd.Endpoint, timeout time.Duration, dst ...transport.MAC) (calls []call) {
	p, begun := port(t, es[0], 9), time.Now()
	d := mcd.AddressDrain{Endpoint: es[0], Timeout: timeout}
	d.DrainEach(context.Background(), func(dst []transport.MAC, err error) {
		c := call{after: time.Since(begun), dst: slices.Clone(dst)}
		if err != nil {
			c.text = err.Error()
		}
		calls = append(calls, c)
		for _, e := range es[1:] {
			err := p.TrySend(0, mcd.To(mcd.Addr{Node: e.Node(), Port: 9}), nil)
			if slices.Contains(dst, e.MAC(0)) && !errors.Is(err, transport.ErrBusy) {
				t.Errorf("to node %d, in its change: %v, want ErrBusy", e.Node(), err)
			}
		}
	}, dst...)
	for _, e := range es[1:] {
		if err := p.TrySend(0, mcd.To(mcd.Addr{Node: e.Node(), Port: 9}), nil); err != nil {
			t.Errorf("to node %d, after the drain: %v", e.Node(), err)
		}
	}
	return calls
}

func expectCalls(t *testing.T, got []call, want ...call) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls of the change:\n%v, want\n%v", got, want)
	}
}

// Addresses change as they are drained. One that is silent holds up no other, and what is held back
// for it goes on behind its change alone.
func TestAddressDrainEach_SilentNodesHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := distant(t, mcd.Config{}, silent, 20*time.Millisecond, 30*time.Millisecond, 300*time.Millisecond, silent)
		a := func(k int) transport.MAC { return es[k].MAC(0) }
		p := port(t, es[0], 1)
		time.AfterFunc(100*time.Millisecond, func() {
			for k, want := range []error{1: transport.ErrBusy, 2: nil, 3: nil, 4: transport.ErrBusy, 5: transport.ErrBusy} {
				if k == 0 {
					continue
				}
				if err := p.TrySend(0, mcd.To(mcd.Addr{Node: mcd.NodeID(k)}), nil); !errors.Is(err, want) {
					t.Errorf("to node %d meanwhile: %v, want %v", k, err, want)
				}
			}
		})
		expectCalls(t, drainEach(t, es, time.Second, a(5), a(1), a(2), a(3), a(4), a(4), transport.MAC{2, 9, 9}),
			call{0, []transport.MAC{{2, 9, 9}}, ""},
			call{20 * time.Millisecond, []transport.MAC{a(2)}, ""},
			call{30 * time.Millisecond, []transport.MAC{a(3)}, ""},
			call{300 * time.Millisecond, []transport.MAC{a(4)}, ""},
			call{time.Second, []transport.MAC{a(1), a(5)}, "drain: node 1 by no tag: no answer for 1s (one of 2 silent paths)"})
	})
}

// Where a link refuses what is for one node, the others' probes go on.
func TestAddressDrainEach_LinkRefusesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 3)
		link.refuse(func(f *transport.Frame) bool { return f.Dst == es[1].MAC(0) })
		time.AfterFunc(3500*time.Microsecond, func() { link.refuse(nil) })
		calls := drainEach(t, es, 0, es[1].MAC(0), es[2].MAC(0))
		if len(calls) != 2 || calls[0].dst[0] != es[2].MAC(0) || calls[0].after > 0 || calls[1].after < 3500*time.Microsecond ||
			calls[1].after > 4500*time.Microsecond {
			t.Errorf("calls %v, want node 2's at once, and node 1's within 1 ms from when there is room", calls)
		}
	})
}

// An address whose path fails changes at once, with the error.
func TestAddressDrainEach_PathThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		links := switched(t, 3)
		links[0] = refusing{links[0], links[1].MAC(), down}
		links[2] = faulty(t, links[2], fault.Config{Delay: 1, DelayMin: time.Second, DelayMax: time.Second})
		es := wrapped(t, mcd.Config{}, links...)
		calls := drainEach(t, es[:1], 0, es[1].MAC(0), es[2].MAC(0))
		expectCalls(t, calls, call{0, []transport.MAC{es[1].MAC(0)}, "drain: down"},
			call{time.Second, []transport.MAC{es[2].MAC(0)}, ""})
	})
}

// refusing is a link whose frames to one address fail.
type refusing struct {
	transport.Link
	dst transport.MAC
	err error
}

func (l refusing) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		if frames[i].Dst == l.dst {
			return 0, l.err
		}
	}
	return l.Link.Send(frames)
}

// A drain that does not get its turn changes the addresses all the same.
func TestAddressDrainEach_WithoutATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := distant(t, mcd.Config{}, time.Millisecond)
		inside := make(chan struct{})
		go func() { _ = es[0].Drain(context.Background(), func() error { <-inside; return nil }, 1) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		calls := 0
		mcd.AddressDrain{Endpoint: es[0]}.DrainEach(ctx, func(dst []transport.MAC, err error) {
			if calls++; !errors.Is(err, context.DeadlineExceeded) || len(dst) != 1 || dst[0] != es[1].MAC(0) {
				t.Errorf("%v, %v", dst, err)
			}
		}, es[1].MAC(0))
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
		close(inside)
	})
}

// The default route's address stands for all nodes that have no route of their own: as the table
// says, or with another router all whose tag is the default's.
func TestAddressDrain_DefaultRoute(t *testing.T) {
	tagged := transport.Tagged(transport.Tag{VID: 1})
	byDefault := vlan.Route{Dst: transport.Broadcast, OptionalTag: tagged}
	for _, c := range []struct {
		name   string
		router func(own transport.MAC) vlan.Router
		want   []uint64 // probes at nodes 1 to 3
	}{
		{"a table, in which node 1 has a route of its own", func(own transport.MAC) vlan.Router {
			table, err := vlan.NewTable([]vlan.Route{byDefault, {Dst: own, OptionalTag: tagged}})
			if err != nil {
				t.Fatal(err)
			}
			return table
		}, []uint64{0, 1, 1}},
		{"another router, with another tag for node 1", func(own transport.MAC) vlan.Router {
			return except{own, tagged}
		}, []uint64{0, 1, 1}},
		{"no router", func(transport.MAC) vlan.Router { return nil }, []uint64{1, 1, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			links := switched(t, 4)
			es := wrapped(t, mcd.Config{Router: c.router(links[1].MAC())}, links...)
			err := mcd.AddressDrain{Endpoint: es[0]}.Drain(limit(t), func() error { return nil }, transport.Broadcast)
			var got []uint64
			for _, e := range es[1:] {
				probed := e.Counters().RxProbes
				got = append(got, probed)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: probes %v, %v; want %v", c.name, got, err, c.want)
			}
		})
	}
}

// except is a router that sends untagged to one address.
type except struct {
	dst transport.MAC
	tag transport.OptionalTag
}

func (r except) Route(dst transport.MAC) transport.OptionalTag {
	if dst == r.dst {
		return transport.Untagged
	}
	return r.tag
}

// A node that is drained for its own address and for the default route is held until both have
// changed.
func TestAddressDrainEach_NodeOfTwoGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, err := vlan.NewTable(nil)
		if err != nil {
			t.Fatal(err)
		}
		es := distant(t, mcd.Config{Router: table}, silent, 20*time.Millisecond)
		p := port(t, es[0], 1)
		time.AfterFunc(500*time.Millisecond, func() {
			if err := p.TrySend(0, mcd.To(mcd.Addr{Node: 2}), nil); !errors.Is(err, transport.ErrBusy) {
				t.Errorf("before the default route has changed: %v, want ErrBusy", err)
			}
		})
		expectCalls(t, drainEach(t, es, time.Second, transport.Broadcast, es[2].MAC(0)),
			call{20 * time.Millisecond, []transport.MAC{es[2].MAC(0)}, ""},
			call{time.Second, []transport.MAC{transport.Broadcast}, "drain: node 1 by no tag: no answer for 1s"})
	})
}
