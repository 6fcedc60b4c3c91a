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
	full atomic.Bool
}

func (l *narrow) Send(frames []transport.Frame) (int, error) {
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
