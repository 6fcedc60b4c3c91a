package mcd_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
)

// Messages are counted with the bytes of their payloads: at their port, at the endpoint, also once
// the port is closed; to one node and to all, with keys and without.
func TestCounters_CountPayloads(t *testing.T) {
	for _, change := range []func(*mcd.Config){func(*mcd.Config) {}, keyed(ring(1, false)), keyed(ring(1, true))} {
		es := open(t, 2, 1, change)
		p, q := port(t, es[0], 5), port(t, es[1], 5)
		send(t, p, q.Addr(), nil)
		send(t, p, q.Addr(), []byte("hello"))
		if err := p.Broadcast(limit(t), 5, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		d := &mcd.SendDesc{To: mcd.To(q.Addr()), Payload: make([]byte, 100)}
		if err := p.PostSend(d); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		for _, want := range []int{0, 5, 1000, 100} {
			if n, _, err := q.Recv(limit(t), b); n != want || err != nil {
				t.Errorf("%d bytes, %v; want %d", n, err, want)
			}
		}
		if c := p.Counters(); c != (mcd.PortCounters{TxMessages: 4, TxBytes: 1105}) {
			t.Errorf("the sender: %+v", c)
		}
		if c := q.Counters(); c != (mcd.PortCounters{RxMessages: 4, RxBytes: 1105}) {
			t.Errorf("the receiver: %+v", c)
		}
		for range 2 {
			for _, x := range []*mcd.Port{p, q} {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
			if c := es[0].Counters(); c.TxMessages != 4 || c.TxBytes != 1105 || c.RxMessages+c.RxBytes != 0 {
				t.Errorf("the sender's endpoint: %+v", c)
			}
			if c := es[1].Counters(); c.RxMessages != 4 || c.RxBytes != 1105 || c.TxMessages+c.TxBytes != 0 {
				t.Errorf("the receiver's endpoint: %+v", c)
			}
		}
	}
}

// Each watcher of probes hears of them until it is stopped, whoever else watches.
func TestWatchProbes_StopsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := open(t, 2, 1, func(cfg *mcd.Config) { cfg.Spin = -1 })
		const watchers = 3
		var heard [watchers]atomic.Int32
		var stops [watchers]func()
		for i := range watchers {
			stops[i] = es[1].WatchProbes(func(*mcd.Probe) { heard[i].Add(1) })
		}
		path, err := es[0].Path(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for stopped := range watchers {
			if _, err := es[0].Ping(limit(t), path, mcd.ProbeOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()  // the watchers are told behind the reply
			stops[stopped]() // the first one, then the second
			for i := range watchers {
				if n, want := heard[i].Load(), int32(min(stopped, i)+1); n != want {
					t.Errorf("after %d pings watcher %d has heard %d, want %d", stopped+1, i, n, want)
				}
			}
		}
	})
}

// A message that somebody has received is counted.
func TestCounters_BeforeTheMessage(t *testing.T) {
	es := open(t, 2, 1)
	p, q := port(t, es[0], 5), port(t, es[1], 5)
	stop := make(chan struct{})
	var polling sync.WaitGroup
	polling.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				es[1].Progress()
			}
		}
	})
	defer polling.Wait()
	defer close(stop)
	b := make([]byte, 1)
	for received := range uint64(2000) {
		send(t, p, q.Addr(), []byte{1})
		for ok := false; !ok; {
			var err error
			if _, _, ok, err = q.TryRecv(b); err != nil {
				t.Fatal(err)
			}
		}
		if c := q.Counters(); c.RxMessages != received+1 {
			t.Fatalf("%d messages are counted of %d", c.RxMessages, received+1)
		}
	}
}
