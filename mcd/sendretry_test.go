package mcd

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// narrow is a link that has no room while full is set.
type narrow struct {
	transport.Link
	full  atomic.Bool
	tries atomic.Int64
}

func (l *narrow) Send(frames []transport.Frame) (int, error) {
	l.tries.Add(1)
	if l.full.Load() {
		return 0, transport.ErrBusy
	}
	return l.Link.Send(frames)
}

// A retry that comes while another goroutine holds the queue's lock, as one does whose Send gives
// up, is not lost: what waits is sent, though nobody makes progress.
func TestSendQueue_RetryWaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		link := &narrow{Link: x}
		link.full.Store(true)
		e, err := Open(Config{Spin: -1, Nodes: []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}}, link)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := &SendDesc{To: To(Addr{Node: 1, Port: 1})}
		if err := p.PostSend(d); err != nil || d.Done() {
			t.Fatalf("posted to a full link: done %v, %v", d.Done(), err)
		}
		link.full.Store(false)
		q := &e.nics[0].queue
		q.mu.Lock()
		time.AfterFunc(sendRetry, func() { // at the same time as the retry
			for range 1000 { // until the retry has found the lock taken, most likely
				runtime.Gosched()
			}
			q.mu.Unlock()
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := d.Wait(ctx); err != nil {
			t.Errorf("not sent once the link has room: %v", err)
		}
	})
}

// A link that has just refused a message is left alone for flushPause, however often spinning
// goroutines ask, and tried once then.
func TestSendQueue_FlushLeavesAFullLinkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes where the test sleeps
		x, y := linktest.Pipe()
		link := &narrow{Link: x}
		link.full.Store(true)
		e, err := Open(Config{Spin: -1, Nodes: []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}}, link)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := &SendDesc{To: To(Addr{Node: 1, Port: 1})}
		if err := p.PostSend(d); err != nil {
			t.Fatal(err)
		}
		e.flush()
		for round := range 3 {
			before := link.tries.Load()
			for range 100 {
				e.flush()
			}
			if n := link.tries.Load() - before; n != 0 {
				t.Errorf("round %d: %d tries at the instant of a refusal", round, n)
			}
			time.Sleep(flushPause)
			e.flush()
			e.flush()
			if n := link.tries.Load() - before; n != 1 {
				t.Errorf("round %d: %d tries in %v, want 1", round, n, flushPause)
			}
		}
		link.full.Store(false)
		time.Sleep(flushPause)
		e.flush()
		if !d.Done() {
			t.Error("not sent once there is room")
		}
	})
}
