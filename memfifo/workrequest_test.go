package memfifo

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/internal/clock"
)

// The table of states in workrequest.go, row by row.
func TestWorkRequest_States(t *testing.T) {
	lost := errors.New("lost")
	put := request{op: opPut, data: make([]byte, 8)}
	long := request{op: opPut, data: make([]byte, 1<<20)} // more than the window
	fence := request{op: opFence}
	for _, x := range []struct {
		name  string
		what  request
		event func(p *peer, wr *workRequest)
		next  requestState
		err   error
	}{
		{"posted behind one that has no room", long, func(*peer, *workRequest) {}, queued, nil},
		{"its caller gives up", long, func(p *peer, wr *workRequest) { p.withdraw(wr); wr.state = idle }, idle, nil},
		{"its last part is in a frame", put, func(*peer, *workRequest) {}, framed, nil},
		{"queued, and the peer is lost", long, func(p *peer, _ *workRequest) { p.fail(lost) }, done, lost},
		{"framed, and its reply", fence, func(p *peer, wr *workRequest) {
			delete(p.pending, wr.requestID)
			wr.complete(nil)
		}, done, nil},
		{"framed with a reply, and the peer is lost", fence, func(p *peer, _ *workRequest) { p.fail(lost) }, done, lost},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := openRaw(t)
			d.mu.Lock()
			defer d.mu.Unlock()
			p := d.peer(1)
			wr := d.newRequest(p, &x.what)
			wr.expectLocal()
			wr.expectRemote()
			if !wr.op.HasReply() {
				wr.signalRemote = false
			}
			p.queue.PushBack(&wr.node, wr)
			p.sendQueued(clock.Now())
			x.event(p, wr)
			if wr.state != x.next || !errors.Is(wr.awaited().Err(), x.err) {
				t.Errorf("%s: %v, %v", x.name, wr.state, wr.awaited().Err())
			}
			if local := wr.state == framed || wr.state == done; wr.local.Done() != local {
				t.Errorf("%s: local completion %v", x.name, wr.local.Done())
			}
			if remote := wr.state == done && wr.signalRemote; wr.remote.Done() != remote {
				t.Errorf("%s: remote completion %v", x.name, wr.remote.Done())
			}
			p.fail(ErrClosed)
		})
	}
}

// String names s.
func (s requestState) String() string {
	return [...]string{"idle", "queued", "framed", "done", "?"}[min(s, done+1)]
}

// The timer that fires once a domain is closed does nothing, and is not set again.
func TestAlarm_NothingWhereClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := openRaw(t)
		d.mu.Lock()
		p := d.peer(1)
		_ = p.post(&request{op: opFence}) // there is a deadline
		if at, ok := p.conn.Deadline(); !ok || d.timerAt != at {
			t.Errorf("the timer is set to %v, want %v", d.timerAt.Since(), at.Since())
		}
		d.mu.Unlock()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d.onAlarm()
		d.mu.Lock()
		if !d.timerAt.IsZero() {
			t.Error("the timer of a closed domain is set")
		}
		d.mu.Unlock()
	})
}
