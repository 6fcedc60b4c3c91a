package barrier_test

import (
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
