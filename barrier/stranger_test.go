package barrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// A message counts for the member that sends it, and for none if a node sends it that is no member,
// wherever its number stands among theirs.
func TestMessageOfANodeThatIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		s := service(t, eps[0], barrier.Config{})
		defer s.Close()
		var nack engine.Message // that node 2 gets
		ports := map[int]*mcd.Port{}
		for k := 1; k <= 2; k++ {
			var err error
			ports[k], err = eps[k].OpenPort(barrier.DefaultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
				for i := range batch {
					_ = engine.Parse(batch[i].Payload, &nack)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		g := group(t, s, barrier.GroupConfig{
			Members: barrier.MaskOf(0, 2), Algorithm: schedule.Concurrent(), PeerTimeout: time.Minute,
		})
		ticket := arrive(t, g, barrier.Options{})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if nack.Kind != engine.Nack {
			t.Fatalf("node 2 was sent %v", nack.Kind)
		}
		notify := nack
		notify.Kind, notify.Incarnation = engine.Notify, 99
		for k := 1; k <= 2; k++ {
			want := k == 2
			if err := ports[k].TrySend(0, mcd.To(mcd.Addr{Node: 0, Port: barrier.DefaultPort}), notify.Append(nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if done, err := ticket.Done(); done != want || err != nil {
				t.Errorf("node %d has told that it has entered: done %v, %v; want %v", k, done, err, want)
			}
		}
	})
}
