package mcd_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// A message to a port that is not open, or from a node that the table has elsewhere, has come. Who
// has recorded it sends it again once the port is open and the table is right, and it is a replay.
func TestKeys_RefusedMessagesAreRefusedAgain(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			attach := oneSwitch(t)
			var recorded []transport.Frame
			var mu sync.Mutex
			stranger := attach(mac(99))
			defer stranger.Close()
			right := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}}}
			wrong := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(3)}}, right[1]}
			var es [2]*mcd.Endpoint
			for k, table := range [][]mcd.Node{right, wrong} {
				tap := frameRecorder{Link: attach(mac(byte(k + 1))), mu: &mu, frames: &recorded}
				e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: -1, Keys: ring(1, encrypt)}, &tap)
				if err != nil {
					t.Fatal(err)
				}
				es[k] = e
				defer es[k].Close()
			}
			from := port(t, es[0], 1)
			port(t, es[1], 1)
			mu.Lock()
			recorded = nil // of what is to come
			mu.Unlock()
			send(t, from, mcd.Addr{Node: 1, Port: 1}, []byte("from elsewhere"))
			send(t, from, mcd.Addr{Node: 1, Port: 9}, []byte("to nobody"))
			time.Sleep(time.Second)
			synctest.Wait()
			if c := es[1].Counters(); c.DropSource != 1 || c.DropNoPort != 1 || c.RxMessages != 0 {
				t.Fatalf("at first %+v; want one message dropped for its source and one for its port", c)
			}
			port(t, es[1], 9)
			if err := es[1].SetNodes(right); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			all := slices.Clone(recorded)
			mu.Unlock()
			if n, err := stranger.Send(all); n != len(all) || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if c := es[1].Counters(); c.RxMessages != 0 || c.DropReplay < 2 {
				t.Errorf("sent again, %d messages were delivered, and %d frames were replays (want 0 and 2): %+v",
					c.RxMessages, c.DropReplay, c)
			}
		})
	}
}
