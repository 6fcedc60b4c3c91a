package barrier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// cluster makes endpoints on one switch.
func cluster(t testing.TB, nodes int) []*mcd.Endpoint {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sw := f.AddSwitch("")
	links, table := make([]transport.Link, nodes), make([]mcd.Node, nodes)
	for k := range links {
		if links[k], err = f.Attach(sw, fabric.Station{}); err != nil {
			t.Fatal(err)
		}
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{links[k].MAC()}}
	}
	all := make([]*mcd.Endpoint, nodes)
	for k := range all {
		if all[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table}, links[k]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = all[k].Close() })
	}
	return all
}

func groups(t testing.TB, eps []*mcd.Endpoint, cfg barrier.Config) []*barrier.Group {
	t.Helper()
	all := make([]*barrier.Group, len(eps))
	for k, e := range eps {
		var err error
		if all[k], err = barrier.NewGroup(e, cfg); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestBarrier(t *testing.T) {
	for _, name := range []string{"shuffle", "tree:2", "tree:3", "concurrent", "star", "hier:3", "chassis", "auto"} {
		t.Run(name, func(t *testing.T) {
			a, _ := schedule.Parse(name)
			gs := groups(t, cluster(t, 7), barrier.Config{Algorithm: a})
			var wg sync.WaitGroup
			for k, g := range gs {
				wg.Go(func() {
					for range 1000 {
						if err := g.Barrier(context.Background()); err != nil {
							t.Errorf("node %d: %v", k, err)
							return
						}
					}
				})
			}
			wg.Wait()
			fmt.Println(gs[0].Stats())
		})
	}
}
