package barrier_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport/fabric"
)

// By links of short frames the first barrier of a large group, whose messages tell who is who, is
// completed as the others are: by UDP over a path of 1,280 bytes, with a key, and by shorter ones.
func TestShortFrames(t *testing.T) {
	for mtu, size := range map[int]int{1280 - 66 - 28: 300, 100: 16} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, size, mcdtest.Config{
				Fabric: fabric.Config{MTU: mtu}, Endpoint: mcd.Config{Spin: -1},
			})
			var all []*barrier.Service
			defer func() { closeAll(all) }()
			var running sync.WaitGroup
			for k, e := range eps {
				s := service(t, e, barrier.Config{})
				all = append(all, s)
				g := group(t, s, barrier.GroupConfig{})
				running.Go(func() {
					for range 3 {
						if err := g.Barrier(shorter(t, limit(t), 10*time.Second)); err != nil {
							t.Errorf("MTU %d, node %d of %d: %v", mtu, k, size, err)
							return
						}
					}
				})
			}
			running.Wait()
		})
	}
}

// By links of short frames members agree on those that are gone, as many as a frame names; of more,
// each decides without the others, and none takes one that lives for gone.
func TestShortFrames_WhoIsGone(t *testing.T) {
	const alive = 20
	for _, dead := range []int{15, 16, 30} { // (80 - 34) / 3 are named
		synctest.Test(t, func(t *testing.T) {
			c := new(cluster).start(t, alive+dead, mcdtest.Config{
				Fabric: fabric.Config{MTU: 100}, Endpoint: mcd.Config{Spin: -1},
			})
			all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second})
			stages(t, all, 2, func(int, int) {})
			for _, e := range c.eps[alive:] {
				_ = e.Close()
			}
			if failed := meet(t, all[:alive], 0); dead == 15 && failed != alive {
				t.Errorf("%d barriers failed at %d survivors", failed, alive)
			}
		})
	}
}

// By links of short frames a goodbye is heard of a member that has used more numbers than a frame
// has room for: who awaits it does so no longer, and it waits for nobody.
func TestShortFrames_Goodbye(t *testing.T) {
	const numbers = 20
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).start(t, 2, mcdtest.Config{
			Fabric: fabric.Config{MTU: 100}, Endpoint: mcd.Config{Spin: -1},
		})
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})
		for number := range uint8(numbers) {
			o := barrier.Options{Number: number}
			ticket := arrive(t, all[0], o)
			if err := errors.Join(all[1].BarrierWith(limit(t), o), ticket.Wait(limit(t))); err != nil {
				t.Fatal(err)
			}
		}
		ticket, begun := arrive(t, all[1], barrier.Options{}), time.Now()
		_ = all[0].Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if down := downOf(t, ticket.Wait(limit(t))); down.Reasons[0] != barrier.Left || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), down)
		}
	})
}
