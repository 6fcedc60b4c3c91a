package rawnet

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A node that is dialed after it was down, before its controlLoop has seen that, is probed: its next
// death is missed.
func TestDown_DialedBeforeTheControlLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var links []*fault.Link
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, inner transport.Link) transport.Link {
				l, err := fault.New(inner, rand.New(rand.NewPCG(1, 1)), fault.Config{})
				must(err)
				links = append(links, l)
				return l
			},
		})
		var nets []*Net
		for _, ep := range eps {
			n, err := Open(ep, Config{})
			must(err)
			t.Cleanup(func() { _ = n.Close() })
			nets = append(nets, n)
		}
		_, err := nets[1].Listen("x")
		must(err)
		n := nets[0]
		dies := func(begin, end func(p *node)) {
			c, err := n.Dial(Network, "1:x")
			must(err)
			n.mu.Lock()
			p := n.layer.Node(1)
			end(p)
			n.mu.Unlock()
			time.Sleep(time.Minute)
			n.mu.Lock()
			begin(p)
			n.mu.Unlock()
			links[1].Cut(true)
			_, err = c.Read(make([]byte, 1))
			if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Reason != memfifo.Silent {
				t.Errorf("%v, want that node 1 has not answered", err)
			}
			links[1].Cut(false)
			synctest.Wait()
		}
		dies(func(p *node) { p.controlled = true }, func(*node) {}) // no controlLoop begins
		dies(func(*node) {}, func(p *node) {
			p.controlled = false
			n.startControl(p)
		})
	})
}

// A node that is found down while a dial has it probed is not probed for ever.
func TestSettle_DownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		var nets []*Net
		for _, ep := range eps {
			n, err := Open(ep, Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.Close() })
			nets = append(nets, n)
		}
		n := nets[0]
		held, release := make(chan bool), make(chan bool)
		_, err := n.layer.Domain.Handle(2, memfifo.HandlerConfig{Public: true, Record: func(memfifo.Sender, []byte) {
			held <- true
			<-release
		}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = n.layer.Domain.Remote(memfifo.PublicKey(0, 2)).Push(t.Context(), nil) }()
		<-held // the domain's lock
		dialed := make(chan error)
		go func() { _, err := n.Dial(Network, "1:x"); dialed <- err }()
		var p *node
		for settling := false; !settling; runtime.Gosched() {
			n.mu.Lock()
			p = n.layer.Node(1)
			settling = p.settling
			n.mu.Unlock()
		}
		n.down(&memfifo.PeerDownError{Node: 1, Reason: memfifo.DataLost})
		release <- true
		if err := <-dialed; err == nil {
			t.Error("dialed")
		}
		time.Sleep(time.Second)
		before := eps[0].Counters().TxMessages
		time.Sleep(time.Minute)
		if n := eps[0].Counters().TxMessages - before; n > 0 {
			t.Errorf("%d frames in a minute without connections", n)
		}
	})
}

// endsOnce is a context whose first question ends the goroutine that asks, as another port's function
// does that runs where a push waits.
type endsOnce struct {
	context.Context
	done atomic.Bool
}

func (e *endsOnce) Err() error {
	if !e.done.Swap(true) {
		runtime.Goexit()
	}
	return e.Context.Err()
}

// Where the goroutine ends that sends what is owed, another one goes on.
func TestControlLoop_ThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nets []*Net
		for _, ep := range mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			n, err := Open(ep, Config{})
			if err != nil {
				t.Fatal(err)
			}
			nets = append(nets, n)
			defer n.Close()
		}
		l, err := nets[1].Listen("x")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := nets[0].Dial(Network, "1:x")
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		n, c := nets[0], conn.(*Conn)
		synctest.Wait()
		ends := &endsOnce{Context: n.ended}
		n.mu.Lock()
		n.ended = ends
		c.s.CloseWrite()
		n.startControl(c.peer)
		n.mu.Unlock()
		if _, err := accepted.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || !ends.done.Load() {
			t.Errorf("%v, want EOF; a goroutine has ended: %v", err, ends.done.Load())
		}
		synctest.Wait()
	})
}
