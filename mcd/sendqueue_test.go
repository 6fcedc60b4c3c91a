package mcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// choosy is a link that has no room for some frames, as a fabric whose receiver does not poll.
type choosy struct {
	transport.Link
	mu      sync.Mutex
	refuses func(*transport.Frame) bool
}

func (c *choosy) Unwrap() transport.Link { return c.Link }

func (c *choosy) refuse(f func(*transport.Frame) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = f
}

func (c *choosy) Send(frames []transport.Frame) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		if c.refuses != nil && c.refuses(&frames[i]) {
			return i, transport.ErrBusy
		}
		if n, err := c.Link.Send(frames[i : i+1]); n == 0 {
			return i, err
		}
	}
	return len(frames), nil
}

// choosing opens n nodes, the first of which sends by a choosy link.
func choosing(t testing.TB, n int) (*choosy, []*mcd.Endpoint) {
	c := &choosy{}
	cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: -1, Backlog: 1000}}
	cfg.Wrap = func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
		if node != 0 {
			return l
		}
		c.Link = l
		return c
	}
	return c, mcdtest.Open(t, n, cfg)
}

func to(e *mcd.Endpoint) func(*transport.Frame) bool {
	return func(f *transport.Frame) bool { return f.Dst == e.MAC(0) || f.Dst.IsMulticast() }
}

// What the link refuses for one node does not hold up messages to others. A broadcast waits for
// what was posted before it, and what is posted after it waits for the broadcast: each node's
// messages keep their order.
func TestPostedDescriptorsOfOtherDestinationsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 3)
		p, a, b := port(t, es[0], 1), port(t, es[1], 1), port(t, es[2], 1)
		link.refuse(to(es[1]))
		post := func(to mcd.Dest, text string) *mcd.SendDesc {
			d := &mcd.SendDesc{To: to, Payload: []byte(text)}
			if err := p.PostSend(d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		toA, toB := mcd.To(a.Addr()), mcd.To(b.Addr())
		first := post(toA, "a1")
		if d := post(toB, "b1"); !d.Done() || first.Done() {
			t.Errorf("done %v, and %v for the refused one; want true, false", d.Done(), first.Done())
		}
		if err := p.TrySend(0, toB, []byte("b2")); err != nil {
			t.Errorf("TrySend past another node's message: %v", err)
		}
		if err := p.TrySend(0, toA, nil); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend past the same node's message: %v, want ErrBusy", err)
		}
		if err := p.TrySend(0, mcd.ToAll(1), nil); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend to all past a node's message: %v, want ErrBusy", err)
		}
		all := post(mcd.ToAll(1), "all")
		if err := p.TrySend(0, toB, nil); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend past a broadcast that waits: %v, want ErrBusy", err)
		}
		last := post(toB, "b3")
		if err := p.TrySend(0, toB, nil); !errors.Is(err, transport.ErrBusy) || all.Done() || last.Done() {
			t.Errorf("past a broadcast that waits: TrySend %v, broadcast done %v, next done %v", err, all.Done(), last.Done())
		}
		link.refuse(nil)
		for _, want := range []string{"b1", "b2", "all", "b3"} {
			expect(t, b, p.Addr(), want)
		}
		for _, want := range []string{"a1", "all"} {
			expect(t, a, p.Addr(), want)
		}
	})
}

// Random posts to random destinations over a link that refuses at random: every message arrives,
// and each node's messages, broadcasts among them, in the order in which they were posted.
func TestPostedDescriptorsKeepEachNodesOrder(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			const nodes, messages = 8, 300
			link, es := choosing(t, nodes)
			refusals := rand.New(rand.NewPCG(seed, 1))
			link.refuse(func(*transport.Frame) bool { return refusals.IntN(3) > 0 })
			ports := []*mcd.Port{port(t, es[0], 1), port(t, es[0], 2)}
			var in []*mcd.Port
			for _, e := range es[1:] {
				in = append(in, port(t, e, 1))
			}
			want := make([][]string, nodes)
			var ds []*mcd.SendDesc
			for i := range messages {
				text := fmt.Sprint(i)
				d := &mcd.SendDesc{Payload: []byte(text), To: mcd.ToAll(1)}
				if k := rng.IntN(nodes + 1); 0 < k && k < nodes {
					d.To = mcd.To(in[k-1].Addr())
					want[k] = append(want[k], text)
				} else {
					for k := range want {
						want[k] = append(want[k], text)
					}
				}
				ds = append(ds, d)
			}
			for rest := ds; len(rest) > 0; {
				n := min(1+rng.IntN(20), len(rest))
				if err := ports[rng.IntN(2)].PostSend(rest[:n]...); err != nil {
					t.Fatal(err)
				}
				if rest = rest[n:]; rng.IntN(4) == 0 {
					es[0].Progress()
				}
			}
			for _, d := range ds {
				if err := d.Wait(limit(t)); err != nil {
					t.Fatal(err)
				}
			}
			for k, p := range in {
				var got []string
				buf := make([]byte, 10)
				for range want[k+1] {
					n, _, err := p.Recv(limit(t), buf)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(buf[:n]))
				}
				if !slices.Equal(got, want[k+1]) {
					t.Errorf("seed %d, node %d: %v, want %v", seed, k+1, got, want[k+1])
				}
			}
		})
	}
}

// A closed port sends nothing any more, and its Close ends what waits for room.
func TestClosedPortDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 2)
		p, other, in := port(t, es[0], 1), port(t, es[0], 2), port(t, es[1], 1)
		link.refuse(func(*transport.Frame) bool { return true })
		posted := &mcd.SendDesc{To: mcd.To(in.Addr())}
		kept := &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: []byte("kept")}
		if err := errors.Join(p.PostSend(posted), other.PostSend(kept)); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error)
		go func() { waiting <- p.Send(context.Background(), in.Addr(), nil) }()
		go func() { waiting <- p.Broadcast(context.Background(), 1, nil) }()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		link.refuse(nil)
		d := &mcd.SendDesc{To: mcd.To(in.Addr())}
		for what, err := range map[string]error{
			"a Send that waits":      <-waiting,
			"a Broadcast that waits": <-waiting,
			"what was posted":        posted.Wait(limit(t)),
			"Send":                   p.Send(limit(t), in.Addr(), nil),
			"TrySend":                p.TrySend(0, mcd.To(in.Addr()), nil),
			"PostSend":               p.PostSend(d),
		} {
			if !errors.Is(err, mcd.ErrClosed) || !strings.Contains(err.Error(), "port") {
				t.Errorf("%s: %v, want ErrClosed, which may be the port's alone", what, err)
			}
		}
		if n, err := p.TrySendInPlace(0, mcd.To(in.Addr()), make([]byte, es[0].Headroom())); n != 0 || !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("TrySendInPlace: %d, %v, want ErrClosed", n, err)
		}
		expect(t, in, other.Addr(), "kept")
		if c := es[0].LinkCounters(0); c.TxFrames != 1 {
			t.Errorf("%d frames were sent, want that of the other port alone", c.TxFrames)
		}
	})
}

// A descriptor that is given twice in one call is refused, whether the link has room or not, and
// nothing is posted; each alone is.
func TestDescriptorGivenTwice(t *testing.T) {
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link, es := choosing(t, 2)
			p, in := port(t, es[0], 1), port(t, es[1], 1)
			link.refuse(func(*transport.Frame) bool { return full })
			d := &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: []byte("once")}
			other := &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: []byte("other")}
			if err := p.PostSend(d, other, d); !errors.Is(err, mcd.ErrPosted) || !strings.Contains(err.Error(), "descriptor 2") {
				t.Errorf("%v, want that the last one is posted", err)
			}
			for range 2 {
				if err := p.PostSend(d, other); err != nil {
					t.Fatal(err)
				}
				link.refuse(nil)
				for _, d := range []*mcd.SendDesc{d, other} {
					if err := d.Wait(limit(t)); err != nil {
						t.Fatal(err)
					}
					expect(t, in, p.Addr(), string(d.Payload))
				}
			}
			send(t, p, in.Addr(), []byte("next"))
			expect(t, in, p.Addr(), "next")
		})
	}
}

// A Send that gives up leaves nothing behind that could be sent later.
func TestSendThatGivesUpIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 2)
		p, in := port(t, es[0], 1), port(t, es[1], 1)
		link.refuse(func(*transport.Frame) bool { return true })
		ctx, cancel := context.WithCancel(context.Background())
		waiting := make(chan error)
		go func() { waiting <- p.Send(ctx, in.Addr(), []byte("late")) }()
		synctest.Wait()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
		link.refuse(nil)
		send(t, p, in.Addr(), []byte("next"))
		expect(t, in, p.Addr(), "next")
	})
}

// BenchmarkFlush is what a descriptor costs that had to wait, with few others and with many.
func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			link, es := choosing(b, 2)
			p := port(b, es[0], 1)
			if _, err := es[1].OpenPort(1, mcd.PortOptions{Receive: func([]mcd.Message, bool) {}}); err != nil {
				b.Fatal(err)
			}
			ds := make([]*mcd.SendDesc, n)
			for i := range ds {
				ds[i] = &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1}), Payload: make([]byte, 64)}
			}
			for b.Loop() {
				link.refuse(func(*transport.Frame) bool { return true })
				if err := p.PostSend(ds...); err != nil {
					b.Fatal(err)
				}
				link.refuse(nil)
				for !ds[n-1].Done() {
					es[0].Progress()
					es[1].Progress()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/descriptor")
		})
	}
}

// No call of Close returns before the port is released, also if another goroutine closes it, too.
func TestPort_ClosedByTwo(t *testing.T) {
	link, es := choosing(t, 2)
	p := port(t, es[0], 1)
	sending, room, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	link.refuse(func(*transport.Frame) bool { close(sending); <-room; return true })
	go func() { _ = p.TrySend(0, mcd.ToAll(1), nil) }()
	<-sending
	for range 2 {
		go func() { _ = p.Close(); closed <- struct{}{} }()
	}
	for range 1000 { // until both are at it, most likely
		runtime.Gosched()
	}
	if len(closed) > 0 {
		t.Error("Close has returned while a send of the port is under way")
	}
	close(room)
	<-closed
	<-closed
	port(t, es[0], 1)
}

// A goroutine that posts more often than the queue tries again does not keep the queue from it.
func TestPostedDescriptorsGoWhileMoreArePosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 2)
		p := port(t, es[0], 1)
		link.refuse(func(*transport.Frame) bool { return true })
		var ds []*mcd.SendDesc
		for range 100 {
			d := &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1})}
			if err := p.PostSend(d); err != nil {
				t.Fatal(err)
			}
			ds = append(ds, d)
			time.Sleep(20 * time.Microsecond)
			link.refuse(nil)
		}
		if !ds[50].Done() {
			t.Error("after 1 ms nothing was sent, though the link has room")
		}
	})
}

// A link that has room for a few messages now and then has it for those of each node in turn, as
// long as more are posted for the others.
func TestPostedDescriptorsOfEachNodeHaveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const few, nodes, rounds = 8, 3, 4
		link, es := choosing(t, 1+nodes)
		p := port(t, es[0], 1)
		sent := map[transport.MAC]int{}
		for range nodes * rounds {
			left := few
			link.refuse(func(f *transport.Frame) bool {
				if left == 0 {
					return true
				}
				left--
				sent[f.Dst]++
				return false
			})
			for node := mcd.NodeID(1); node <= nodes; node++ {
				for range 2 * few {
					if err := p.PostSend(&mcd.SendDesc{To: mcd.To(mcd.Addr{Node: node, Port: 1})}); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		for _, e := range es[1:] {
			if n := sent[e.MAC(0)]; n < (rounds-1)*few {
				t.Errorf("%d messages went to node %d, want %d or nearly so", n, e.Node(), rounds*few)
			}
		}
	})
}

// Two thousand callers wait for a link that is full, has some room and is full again. Contexts end,
// a drain holds messages back, and the port is closed: each caller returns. So does the drain when
// the endpoint is closed.
func TestWaitingSendersAllReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 3)
		p, in := port(t, es[0], 1), port(t, es[1], 1)
		link.refuse(func(*transport.Frame) bool { return true })
		var callers sync.WaitGroup
		for i := range 2000 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%40)*time.Millisecond)
				defer cancel()
				if i%4 == 0 {
					ctx = context.Background() // Close alone ends this one
				}
				var err error
				switch i % 3 {
				case 0:
					err = p.Send(ctx, in.Addr(), []byte("one"))
				case 1:
					err = p.Broadcast(ctx, 1, []byte("all"))
				default:
					d := &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: []byte("posted")}
					if err = p.PostSend(d); err == nil {
						err = d.Wait(ctx)
					}
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, mcd.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		frames := 0
		link.refuse(func(*transport.Frame) bool { frames++; return frames > 300 || frames%2 == 0 })
		var drain sync.WaitGroup
		drain.Go(func() {
			err := es[0].Drain(context.Background(), func() error { return nil }, 1)
			if err != nil && !errors.Is(err, mcd.ErrClosed) {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		_ = p.Close() // cannot fail
		callers.Wait()
		if err := es[0].Close(); err != nil {
			t.Error(err)
		}
		drain.Wait()
	})
}
