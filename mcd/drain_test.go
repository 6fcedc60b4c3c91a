package mcd_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// slowVID opens nodes 0 and 1 on a network where frames of VID 1 take 10 ms to node 1, and others no time.
func slowVID(t *testing.T, loss float64) (r *switching, es []*mcd.Endpoint, far *fault.Link) {
	links := switched(t, 2)
	far = faulty(t, links[1], fault.Config{Delay: 1, DelayMin: 10 * time.Millisecond, DelayMax: 10 * time.Millisecond, Loss: loss, Match: ofVID(1)})
	r = &switching{vid: 1}
	return r, wrapped(t, mcd.Config{Router: r, Backlog: 1000}, links[0], far), far
}

// By a quicker route messages overtake those that went before; behind a fence none does.
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
				t.Errorf("fence %v: %q came first (%v)", drained, b[:n], err)
			}
		})
	}
}

// Many senders of all kinds, and a route that goes to and fro: each sender's messages arrive in order, and none is lost.
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

// Probes of a fence are lost as all frames are, and repeated.
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

// A fence that cannot be had changes nothing, and what it held back goes on by the old route.
func TestDrainFailsWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, es, far := slowVID(t, 0)
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		if err := far.SetConfig(fault.Config{Loss: 1, Match: ofProbes}); err != nil { // what is posted is let go before we know that the fence failed
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
			t.Errorf("TrySend behind a fence: %v, want ErrBusy", err)
		}
		short, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		if err := p0.Send(short, p1.Addr(), nil); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "send to 1:1: a drain is under way: context deadline exceeded" {
			t.Errorf("Send behind a fence: %v", err)
		}
		d := &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: []byte("posted")}
		if err := p0.PostSend(d); err != nil || d.Done() {
			t.Errorf("PostSend behind a fence: done %v, %v; want it to wait", d.Done(), err)
		}
		err := <-failed
		if !errors.Is(err, mcd.ErrNoAnswer) || err.Error() != "drain: node 1 by VID 1 PCP 3: no answer for 1s (the routes are as they were)" {
			t.Errorf("Fence: %v", err)
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

// A route that no frame can carry leaves the old one, and the fence comes down all the same.
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
	if c := es[2].Counters(); c.RxProbes != 0 {
		t.Error("a node was probed that has none of the addresses")
	}
}
