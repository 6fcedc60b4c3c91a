package mcd_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// slowVID opens nodes 0 and 1 on a network where frames of VID 1 take 10 ms to node 1, and others
// no time.
func slowVID(t *testing.T, loss float64) (r *switching, es []*mcd.Endpoint, far *fault.Link) {
	links := switched(t, 2)
	far = faulty(t, links[1], fault.Config{Delay: 1, DelayMin: 10 * time.Millisecond, DelayMax: 10 * time.Millisecond, Loss: loss, Match: ofVID(1)})
	r = &switching{vid: 1}
	return r, wrapped(t, mcd.Config{Router: r, Backlog: 1000}, links[0], far), far
}

// By a quicker route messages overtake those that went before; after a drain none does.
func TestDrainKeepsMessagesInOrderAcrossAChange(t *testing.T) {
	for _, drained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, es, _ := slowVID(t, 0)
			p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
			send(t, p0, p1.Addr(), []byte("first, by VID 1"))
			change := func() error { r.set(2); return nil }
			var err error
			if drained {
				err = es[0].Drain(limit(t), change, 1)
			} else {
				err = change()
			}
			if err != nil {
				t.Fatal(err)
			}
			send(t, p0, p1.Addr(), []byte("second, by VID 2"))
			b := make([]byte, 100)
			n, _, err := p1.Recv(limit(t), b)
			if overtaken := string(b[:n]) == "second, by VID 2"; err != nil || overtaken == drained {
				t.Errorf("drained %v: %q came first (%v)", drained, b[:n], err)
			}
		})
	}
}

// Many senders of all kinds, and a route that goes to and fro: each sender's messages arrive in
// order, and none is lost.
func TestDrainUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 300
		r, es, _ := slowVID(t, 0)
		in, err := es[1].OpenPort(9, mcd.PortOptions{Receive: inOrder(t, each)})
		if err != nil {
			t.Fatal(err)
		}
		var senders sync.WaitGroup
		for id := range mcd.PortID(3) {
			p := port(t, es[0], id)
			senders.Go(func() {
				for i := range each {
					b := []byte{byte(i >> 8), byte(i)}
					switch id {
					case 0:
						send(t, p, in.Addr(), b)
					case 1:
						for errors.Is(p.TrySend(0, mcd.To(in.Addr()), b), transport.ErrBusy) {
							time.Sleep(100 * time.Microsecond)
						}
					default:
						d := &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: b}
						if err := p.PostSend(d); err != nil {
							t.Error(err)
						}
						if i%2 == 0 {
							_ = d.Wait(limit(t))
						}
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		for vid := range transport.VID(20) {
			if err := es[0].Drain(limit(t), func() error { r.set(1 + vid%2); return nil }, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Millisecond)
		}
		senders.Wait()
		time.Sleep(time.Second)
		if c := in.Counters(); c.RxMessages != 3*each {
			t.Errorf("%d messages arrived, want %d", c.RxMessages, 3*each)
		}
	})
}

// inOrder returns a Receive function that checks that each port's messages count upwards.
func inOrder(t *testing.T, each int) func([]mcd.Message, bool) {
	next := map[mcd.Addr]int{}
	return func(batch []mcd.Message, _ bool) {
		for _, m := range batch {
			got := int(m.Payload[0])<<8 | int(m.Payload[1])
			if got != next[m.From] {
				t.Errorf("from %v: message %d of %d, want %d", m.From, got, each, next[m.From])
			}
			next[m.From] = got + 1
		}
	}
}

// Probes of a drain are lost as all frames are, and repeated.
func TestDrainOutlivesLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, es, far := slowVID(t, 0.7)
		if err := es[0].Drain(limit(t), func() error { r.set(2); return nil }, 1); err != nil {
			t.Fatal(err)
		}
		if far.Counts().Lost == 0 {
			t.Error("no probe was lost: choose another seed")
		}
	})
}

// A drain that fails changes nothing, and what it held back goes on by the old route.
func TestDrainFailsWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, es, far := slowVID(t, 0)
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		// Probes alone are lost: what is posted is let go before the test knows that the drain failed.
		if err := far.SetConfig(fault.Config{Loss: 1, Match: ofProbes}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		failed := make(chan error)
		go func() {
			failed <- es[0].Drain(ctx, func() error { t.Error("the change was run"); return nil }, 1)
		}()
		synctest.Wait()
		if err := p0.TrySend(0, mcd.To(p1.Addr()), nil); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend during a drain: %v, want ErrBusy", err)
		}
		short, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		if err := p0.Send(short, p1.Addr(), nil); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "send to 1:1: a drain is under way: context deadline exceeded" {
			t.Errorf("Send during a drain: %v", err)
		}
		d := &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: []byte("posted")}
		if err := p0.PostSend(d); err != nil || d.Done() {
			t.Errorf("PostSend during a drain: done %v, %v; want it to wait", d.Done(), err)
		}
		err := <-failed
		if !errors.Is(err, mcd.ErrNoAnswer) || err.Error() != "drain: node 1 by VID 1 PCP 3: no answer for 1s (the routes are as they were)" {
			t.Errorf("Drain: %v", err)
		}
		if err := d.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		send(t, p0, p1.Addr(), []byte("sent"))
		expect(t, p1, p0.Addr(), "posted")
		expect(t, p1, p0.Addr(), "sent")
		if tag := r.Route(transport.MAC{}).Tagged; !tag {
			t.Error("the route changed")
		}
	})
}

// endsBetween is a context that has ended when it is looked at for the second time.
type endsBetween struct {
	context.Context
	looks atomic.Int32
}

func (c *endsBetween) Err() error {
	if c.looks.Add(1) > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

// A drain whose context ends in any instant fails with that, too.
func TestDrain_ContextEndsBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, es, _ := slowVID(t, 1)
		err := es[0].Drain(&endsBetween{Context: context.Background()}, func() error { return nil }, 1)
		if !errors.Is(err, mcd.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want no answer, and that the context has ended", err)
		}
	})
}

func TestDrainReturnsTheChangesError(t *testing.T) {
	es := open(t, 3, 2)
	refused := errors.New("refused")
	if err := es[0].Drain(limit(t), func() error { return refused }, 1, 2, 0); !errors.Is(err, refused) {
		t.Errorf("got %v, want the change's error", err)
	}
	if err := es[0].Drain(limit(t), func() error { t.Error("the change was run"); return nil }, 1, 9); !errors.Is(err, mcd.ErrUnknownNode) {
		t.Errorf("unknown node: %v, want ErrUnknownNode", err)
	}
	send(t, port(t, es[0], 1), port(t, es[1], 1).Addr(), nil) // nothing is held
}

// A route that no frame can carry leaves the old one, and the drain ends all the same.
func TestDrainAroundABadRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, es, _ := slowVID(t, 0)
		if err := es[0].Drain(limit(t), func() error { r.set(4095); return nil }, 1); err != nil {
			t.Fatal(err)
		}
		send(t, port(t, es[0], 1), mcd.Addr{Node: 1, Port: 1}, nil)
		if p, err := es[0].Path(1, 0); err != nil || p.Tag.VID != 1 {
			t.Errorf("%v, %v: want VID 1", p, err)
		}
	})
}

func TestOneDrainAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, es, _ := slowVID(t, 0)
		inside := make(chan struct{})
		go func() {
			_ = es[0].Drain(context.Background(), func() error { <-inside; return nil }, 1)
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := es[0].Drain(ctx, func() error { return nil }, 1); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "drain: another one is under way: context deadline exceeded" {
			t.Errorf("got %v", err)
		}
		close(inside)
		if err := es[0].Drain(limit(t), func() error { return nil }, 1); err != nil {
			t.Error(err)
		}
	})
}

func TestAddressDrain(t *testing.T) {
	es := open(t, 3, 1)
	ran := false
	f := mcd.AddressDrain{Endpoint: es[0]}
	err := f.Drain(limit(t), func() error { ran = true; return nil }, es[1].MAC(0), transport.MAC{2, 9, 9})
	if err != nil || !ran {
		t.Errorf("ran %v, %v", ran, err)
	}
	if c := es[1].Counters(); c.RxProbes == 0 {
		t.Error("the node with the address was not probed")
	}
	if c := es[2].Counters(); c.RxProbes != 0 {
		t.Error("a node was probed that has none of the addresses")
	}
}

// A drain for addresses on one network leaves the others alone: it holds back nothing that goes by
// them, and one that delivers nothing does not matter.
func TestAddressDrain_LeavesOtherNetworksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := switched(t, 2), switched(t, 2)
		dead := faulty(t, far[1], fault.Config{Loss: 1})
		es := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}},
			[]transport.Link{near[0], elsewhere{far[0]}}, []transport.Link{near[1], elsewhere{dead}})
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		ran := false
		err := mcd.AddressDrain{Endpoint: es[0]}.Drain(limit(t), func() error {
			ran = true
			if err := p0.TrySend(0, mcd.To(p1.Addr()), nil); !errors.Is(err, transport.ErrBusy) {
				t.Errorf("by the network of the address: %v, want ErrBusy", err)
			}
			if err := p0.TrySend(1, mcd.To(p1.Addr()), nil); err != nil {
				t.Errorf("by the other network: %v", err)
			}
			return nil
		}, es[1].MAC(0))
		if err != nil || !ran {
			t.Errorf("ran %v, %v", ran, err)
		}
		if err := p0.TrySend(0, mcd.To(p1.Addr()), nil); err != nil {
			t.Errorf("after the drain: %v", err)
		}
	})
}

// elsewhere is a link of another network, whose addresses are others.
type elsewhere struct{ transport.Link }

func (l elsewhere) MAC() transport.MAC {
	mac := l.Link.MAC()
	mac[1] ^= 0x80
	return mac
}

// The timeout of a drain by addresses counts from its turn on.
func TestAddressDrain_TimeoutBeginsAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		silent := faulty(t, links[1], fault.Config{Match: ofProbes})
		es := wrapped(t, mcd.Config{}, links[0], silent)
		begun := time.Now()
		go func() {
			_ = es[0].Drain(context.Background(), func() error { time.Sleep(time.Hour); return nil }, 1)
		}()
		synctest.Wait()
		if err := silent.SetConfig(fault.Config{Loss: 1, Match: ofProbes}); err != nil {
			t.Fatal(err)
		}
		d := mcd.AddressDrain{Endpoint: es[0], Timeout: time.Second}
		err := d.Drain(context.Background(), func() error { return nil }, es[1].MAC(0))
		if took := time.Since(begun); !errors.Is(err, mcd.ErrNoAnswer) || took != time.Hour+time.Second {
			t.Errorf("%v after %v, want no answer a second after the other drain's hour", err, took)
		}
	})
}

// While one node is drained, all that is for others goes on: by every kind of send, past what waits
// for the node. What waited goes afterwards, in order.
func TestDrainHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 3)
		deaf := faulty(t, links[1], fault.Config{Loss: 1, Match: ofProbes})
		es := wrapped(t, mcd.Config{}, links[0], deaf, links[2])
		p, drained, other := port(t, es[0], 1), port(t, es[1], 1), port(t, es[2], 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := es[0].Drain(ctx, func() error { return nil }, 1); !errors.Is(err, mcd.ErrNoAnswer) {
				t.Errorf("Drain of a node that does not reply: %v", err)
			}
		}()
		synctest.Wait()
		started := time.Now()
		post := func(to *mcd.Port, text string) *mcd.SendDesc {
			d := &mcd.SendDesc{To: mcd.To(to.Addr()), Payload: []byte(text)}
			if err := p.PostSend(d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d := post(other, "at once"); !d.Done() {
			t.Error("with nothing held, what is posted to the other waits")
		}
		held := post(drained, "held 1")
		if d := post(other, "posted"); !d.Done() || held.Done() {
			t.Errorf("posted to the other: done %v, to the drained node: done %v; want true, false", d.Done(), held.Done())
		}
		if err := p.TrySend(0, mcd.To(other.Addr()), []byte("tried")); err != nil {
			t.Errorf("TrySend to another node: %v", err)
		}
		send(t, p, other.Addr(), []byte("sent"))
		if err := p.Broadcast(limit(t), 1, []byte("to all")); err != nil {
			t.Errorf("Broadcast: %v", err)
		}
		for _, want := range []string{"at once", "posted", "tried", "sent", "to all"} {
			expect(t, other, p.Addr(), want)
		}
		if d := time.Since(started); d > 100*time.Millisecond {
			t.Errorf("messages to the other node took %v", d)
		}
		send(t, p, drained.Addr(), []byte("held 2")) // waits until the drain has failed
		for _, want := range []string{"to all", "held 1", "held 2"} {
			expect(t, drained, p.Addr(), want)
		}
	})
}

// A node whose address changes during a drain stays held, and what waits for the old address is let
// go.
func TestDrainOutlivesANewNodeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 3)
		deaf := faulty(t, links[1], fault.Config{Loss: 1, Match: ofProbes})
		es := wrapped(t, mcd.Config{}, links[0], deaf, links[2])
		p := port(t, es[0], 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = es[0].Drain(ctx, func() error { return nil }, 1)
		}()
		synctest.Wait()
		d := &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1})}
		if err := p.PostSend(d); err != nil || d.Done() {
			t.Fatalf("posted during a drain: done %v, %v", d.Done(), err)
		}
		nodes := es[0].Nodes()
		nodes[1].MACs[0], nodes[2].MACs[0] = nodes[2].MACs[0], nodes[1].MACs[0]
		if err := es[0].SetNodes(nodes); err != nil || !d.Done() {
			t.Errorf("what waits for an address of no node now: done %v, %v", d.Done(), err)
		}
		if err := p.TrySend(0, mcd.To(mcd.Addr{Node: 1, Port: 1}), nil); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend to the drained node's new address: %v, want ErrBusy", err)
		}
		<-done
		send(t, p, mcd.Addr{Node: 1, Port: 1}, nil)
		if c := es[0].LinkCounters(0); c.TxFrames == 0 {
			t.Error("nothing was sent")
		}
	})
}

// gatedLink tells of each Send before the frames go.
type gatedLink struct {
	transport.Link
	before func()
}

func (l *gatedLink) Send(frames []transport.Frame) (int, error) {
	l.before()
	return l.Link.Send(frames)
}

// A drain's probe follows a message whose TrySend is still under way when the drain begins.
func TestDrainAwaitsSendsUnderWay(t *testing.T) {
	links := switched(t, 2)
	var calls atomic.Int32
	var es []*mcd.Endpoint
	drained := make(chan error, 1)
	gate := &gatedLink{Link: links[0], before: func() {
		if calls.Add(1) > 1 {
			return // the probe
		}
		go func() { drained <- es[0].Drain(limit(t), func() error { return nil }, 1) }()
		for range 10_000 { // time enough for the drain to send
			runtime.Gosched()
		}
		if n := calls.Load(); n > 1 {
			t.Error("the drain's probe was sent while an earlier send was under way")
		}
	}}
	es = wrapped(t, mcd.Config{}, gate, links[1])
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	if err := p0.TrySend(0, mcd.To(p1.Addr()), []byte("before the drain")); err != nil {
		t.Fatal(err)
	}
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	expect(t, p1, p0.Addr(), "before the drain")
}
