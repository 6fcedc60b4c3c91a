// Command counter has all nodes count in one word of node 0's memory, by fetch-and-add. Each number
// is drawn once.
//
//	go run ./examples/counter
//	go build ./examples/counter && rawlane run -n 4 ./counter
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/memfifo"
)

const adds = 1000 // of each node

func main() { start.Main(start.Config{Nodes: 4, Limit: 20 * time.Second}, count) }

// count is what each node does.
func count(ctx context.Context, e *start.Node) error {
	barriers, err := barrier.Open(e.Endpoint, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	d, err := memfifo.Open(e.Endpoint, memfifo.Config{})
	if err != nil {
		return err
	}
	var w *memfifo.Window // node 0 has it, and tells the others its key
	var key []byte
	if e.Node() == 0 {
		if w, err = d.Register(1, make([]byte, 8), memfifo.Atomic); err != nil {
			return err
		}
		key = []byte(w.Key().String())
	}
	x, err := cluster.OpenExchanger(e.Endpoint, cluster.ExchangerConfig{})
	if err != nil {
		return err
	}
	keys, err := x.Exchange(ctx, key)
	if err != nil {
		return err
	}
	counterKey, err := memfifo.ParseKey(string(keys[0]))
	if err != nil {
		return err
	}
	counter := d.Remote(counterKey) // node 0 uses it too

	first, last := uint64(0), uint64(0)
	start := time.Now()
	for i := range adds {
		old, err := counter.FetchAdd(ctx, 0, 1)
		if err != nil {
			return err
		}
		if i == 0 {
			first = old
		} else if old <= last {
			return fmt.Errorf("node %d: %d came after %d", e.Node(), old, last)
		}
		last = old
	}
	took := time.Since(start)
	fmt.Printf("node %d: %d numbers from %d to %d, %.1f us each\n",
		e.Node(), adds, first, last, float64(took.Microseconds())/adds)

	if err := g.Barrier(ctx); err != nil { // all nodes have added
		return err
	}
	if w != nil {
		sum, err := w.Load(0)
		if err != nil {
			return err
		}
		if want := uint64(adds * len(e.Nodes())); sum != want {
			return fmt.Errorf("the counter is %d, want %d", sum, want)
		}
		fmt.Printf("node %d: all %d came\n", e.Node(), sum)
	}
	// No node leaves while another still uses its memory.
	return errors.Join(d.Flush(ctx), g.Barrier(ctx), x.Close(), d.Close(), barriers.Close())
}
