package memfifo

import (
	"errors"
	"testing"
	"testing/synctest"
)

// What peer.left counts is what is in the queue: as parcels and posted puts come, a push in parts
// goes on without its caller, and all of them leave.
func TestQueue_CountsWhatIsLeft(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, p *peer){
		"the peer is lost": func(_ *testing.T, p *peer) { p.fail(errors.New("lost")) },
		"all is sent": func(_ *testing.T, p *peer) {
			for wr := p.queue.Front(); wr != nil; wr = p.queue.Front() {
				p.dequeue(wr)
				wr.setFramed()
			}
		},
		"the endpoint is closed": func(t *testing.T, p *peer) {
			p.dropPosted()
			p.checkLeft(t, 2) // the parcel and the push in parts
			p.fail(ErrClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := openRaw(t)
				window, fifo := Key{1, 1, 1}, Key{1, 2, 1}
				d.mu.Lock() // nothing is sent meanwhile
				defer d.mu.Unlock()
				p := d.peer(1)
				wr := d.newRequest(p, &request{op: opPush, key: fifo, data: make([]byte, 5000), total: 5000, begun: true})
				p.enqueue(wr)
				if err := d.post(&Parcel{To: d.Remote(window), Data: make([]byte, 8)}); err != nil {
					t.Fatal(err)
				}
				p.postPut(&PostedPut{Window: window, Tail: fifo, Record: make([]byte, 8), Sent: func(error) *PostedPut { return nil }})
				p.enqueue(d.newRequest(p, &request{op: opPut, key: window, data: make([]byte, 8)}))
				p.checkLeft(t, 3)
				wr.detach()
				p.checkLeft(t, 4)
				if p.mayPass() {
					t.Error("what comes may pass a parcel")
				}
				end(t, p)
				p.checkLeft(t, 0)
				p.fail(ErrClosed)
			})
		})
	}
}

func (p *peer) checkLeft(t *testing.T, want int) {
	t.Helper()
	n := 0
	for wr := p.queue.Front(); wr != nil; wr = wr.node.Next() {
		if wr.isLeft() {
			n++
		}
	}
	if p.left != want || n != want {
		t.Errorf("%d are counted, and %d are in the queue: want %d", p.left, n, want)
	}
}
