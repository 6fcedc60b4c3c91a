// Command workqueue distributes tasks. The nodes draw task numbers from a word in node 0's memory
// and push the results into its FIFO. The FIFO is small: while node 0 is slow the others wait, and
// no result is lost.
//
//	go run ./examples/workqueue
//	go build ./examples/workqueue && rawlane run -n 4 ./workqueue
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

const (
	tasks     = 2000
	queueSize = 512 // bytes: room for 21 results
)

func main() { start.Main(start.Config{Nodes: 4, Limit: 20 * time.Second}, node) }

// node is each node's part.
func node(ctx context.Context, e *start.Node) error {
	if e.Size() < 2 {
		return errors.New("there is nobody to work for node 0 (want two nodes or more)")
	}
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
	x, err := cluster.OpenExchanger(e.Endpoint, cluster.ExchangerConfig{})
	if err != nil {
		return err
	}
	if e.Node() == 0 {
		var workers []mcd.NodeID
		for k := 1; k < e.Size(); k++ {
			workers = append(workers, mcd.NodeID(k))
		}
		err = master(ctx, x, d, workers)
	} else {
		err = worker(ctx, e.Endpoint, x, d)
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Flush(ctx), g.Barrier(ctx), x.Close(), d.Close(), barriers.Close())
}

// master provides the counter and collects the results.
func master(ctx context.Context, x *cluster.Exchanger, d *memfifo.Domain, workers []mcd.NodeID) error {
	w, err1 := d.Register(1, make([]byte, 8), memfifo.Atomic)
	q, err2 := d.NewFIFO(1, make([]byte, queueSize))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if _, err := x.Exchange(ctx, []byte(w.Key().String()+" "+q.Key().String())); err != nil {
		return err
	}
	if err := q.Expect(workers...); err != nil { // they are there, behind the exchange
		return err
	}
	var seen [tasks]bool
	var b [16]byte
	for i := range tasks {
		if i%100 == 0 {
			time.Sleep(10 * time.Millisecond) // slow at times
		}
		n, err := q.Pop(ctx, b[:])
		if err != nil {
			return missing(i, q, err)
		}
		task, result := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
		if n != len(b) || task >= tasks || seen[task] || result != collatz(task) {
			return fmt.Errorf("%d bytes: task %d, result %d: wrong, or the second time", n, task, result)
		}
		seen[task] = true
	}
	fmt.Printf("node 0: %d results, each once\n", tasks)
	return nil
}

// missing says what has not come as a wait for results ended, and who will send none.
func missing(results int, q *memfifo.FIFO, err error) error {
	err = fmt.Errorf("%d of %d results have not come: %w", tasks-results, tasks, err)
	if _, all := errors.AsType[*memfifo.SendersDownError](err); all {
		return err // which names them
	}
	for _, down := range q.Down() {
		err = fmt.Errorf("%w; %w", err, down) // a task that it has drawn has no result
	}
	return err
}

// worker draws task numbers until there are no more.
func worker(ctx context.Context, e *mcd.Endpoint, x *cluster.Exchanger, d *memfifo.Domain) error {
	keys, err := x.Exchange(ctx, nil)
	if err != nil {
		return err
	}
	var counterKey, queueKey string
	if _, err := fmt.Sscan(string(keys[0]), &counterKey, &queueKey); err != nil {
		return err
	}
	ck, err1 := memfifo.ParseKey(counterKey)
	qk, err2 := memfifo.ParseKey(queueKey)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	counter, queue := d.Remote(ck), d.Remote(qk)
	done, full := 0, 0
	for {
		task, err := counter.FetchAdd(ctx, 0, 1)
		if err != nil {
			return err
		}
		if task >= tasks {
			break
		}
		result := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, task), collatz(task))
		err = queue.TryPush(ctx, result)
		if errors.Is(err, memfifo.ErrFull) {
			full++
			err = queue.Push(ctx, result) // waits until there is room
		}
		if err != nil {
			return err
		}
		done++
	}
	fmt.Printf("node %d: %d tasks; the queue was full %d times\n", e.Node(), done, full)
	return nil
}

// collatz counts the steps from n+1 down to 1.
func collatz(n uint64) (steps uint64) {
	for n++; n != 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps
}
