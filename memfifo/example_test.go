package memfifo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
)

// domains makes a cluster in memory. On real machines, each node opens its own link and finds the
// others: see package cluster. Keys reach the others as text, by a message for instance; here they
// are just used.
func domains(n int) (all []*memfifo.Domain, closeAll func()) {
	eps, closeEndpoints, err := mcdtest.Start(n, mcdtest.Config{})
	check(err)
	for _, e := range eps {
		d, err := memfifo.Open(e, memfifo.Config{})
		check(err)
		all = append(all, d)
	}
	return all, func() {
		for _, d := range all {
			// Before any of them is closed, and does not answer any more.
			if err := d.Flush(context.Background()); !errors.Is(err, memfifo.ErrClosed) {
				check(err)
			}
		}
		for _, d := range all {
			check(d.Close())
		}
		check(closeEndpoints())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Node 0 writes to memory of node 1. It is there when Flush has returned.
func Example() {
	ctx := context.Background()
	nodes, closeAll := domains(2)
	defer closeAll()

	mem := make([]byte, 4096)
	w, err := nodes[1].Register(1, mem, memfifo.All)
	check(err)

	r := nodes[0].Remote(w.Key())
	check(r.Put(ctx, 100, []byte("hello")))
	check(nodes[0].Flush(ctx))
	fmt.Printf("%q\n", mem[100:105])

	check(r.Put(ctx, 4094, []byte("beyond")))
	err = nodes[0].Flush(ctx)
	fmt.Println(err, errors.Is(err, memfifo.ErrAccess))
	// Output:
	// "hello"
	// node 1, id 1: access refused: out of range true
}

// Three nodes draw numbers: no two get the same.
func ExampleRemote_FetchAdd() {
	ctx := context.Background()
	nodes, closeAll := domains(4)
	defer closeAll()

	w, err := nodes[0].Register(1, make([]byte, 8), memfifo.Atomic)
	check(err)
	var drawn sync.Map
	var drawing sync.WaitGroup
	for _, d := range nodes[1:] {
		drawing.Go(func() {
			r := d.Remote(w.Key())
			for range 100 {
				number, err := r.FetchAdd(ctx, 0, 1)
				check(err)
				if _, twice := drawn.LoadOrStore(number, true); twice {
					log.Fatal(number, " was drawn twice")
				}
			}
		})
	}
	drawing.Wait()
	next, err := w.Load(0)
	check(err)
	fmt.Println("the next number is", next)
	// Output: the next number is 300
}

// Records of one node come in the order in which it pushed them. The FIFO is small: Push waits
// until there is room.
func ExampleFIFO() {
	ctx := context.Background()
	nodes, closeAll := domains(2)
	defer closeAll()

	q, err := nodes[1].NewFIFO(1, make([]byte, 64))
	check(err)
	var pushing sync.WaitGroup
	pushing.Go(func() {
		r := nodes[0].Remote(q.Key())
		for i := range 1000 {
			check(r.Push(ctx, fmt.Appendf(nil, "record %d", i)))
		}
	})
	buf := make([]byte, 32)
	for i := range 1000 {
		n, err := q.Pop(ctx, buf)
		check(err)
		if i%333 == 0 {
			fmt.Printf("%s\n", buf[:n])
		}
	}
	pushing.Wait()
	// Output:
	// record 0
	// record 333
	// record 666
	// record 999
}

// The owner sleeps until the writes of two nodes are in place.
func ExampleWindow_Wait() {
	ctx := context.Background()
	nodes, closeAll := domains(3)
	defer closeAll()

	w, err := nodes[0].Register(1, make([]byte, 16), memfifo.Write)
	check(err)
	for k, text := range []string{"one half", "and more"} {
		go func() { check(nodes[k+1].Remote(w.Key()).PutNotify(ctx, int64(8*k), []byte(text))) }()
	}
	notes, err := w.Wait(ctx, 1) // more than one: both
	check(err)
	fmt.Printf("%d notifications: %q\n", notes, w.Bytes())
	// Output: 2 notifications: "one halfand more"
}

// Parcels are posted, and sent while the program does something else.
func ExampleDomain_Post() {
	ctx := context.Background()
	nodes, closeAll := domains(2)
	defer closeAll()

	w, err := nodes[1].Register(1, make([]byte, 1<<20), memfifo.Write)
	check(err)
	r := nodes[0].Remote(w.Key())
	large := &memfifo.Parcel{To: r, Off: 0, Data: make([]byte, 1<<20-1)}
	last := &memfifo.Parcel{To: r, Off: 1<<20 - 1, Data: []byte{7}, Notify: memfifo.OnLast}
	check(nodes[0].Post(large, last))
	_, err = w.Wait(ctx, 0) // the last one lands behind the large one
	check(err)
	fmt.Println("the last byte is", w.Bytes()[1<<20-1])
	check(last.WaitRemote(ctx)) // and the sender knows
	fmt.Println("done:", large.Done(), last.Done())
	// Output:
	// the last byte is 7
	// done: true true
}

// A node reads what another one has written.
func ExampleRemote_Get() {
	ctx := context.Background()
	nodes, closeAll := domains(3)
	defer closeAll()

	w, err := nodes[0].Register(1, make([]byte, 1<<16), memfifo.Read|memfifo.Write)
	check(err)
	check(nodes[1].Remote(w.Key()).Put(ctx, 5000, []byte("left here")))
	check(nodes[1].Flush(ctx))
	buf := make([]byte, 9)
	check(nodes[2].Remote(w.Key()).Get(ctx, 5000, buf))
	fmt.Printf("%s\n", buf)
	// Output: left here
}

// Several nodes change a cell, each depending on its value: a node that finds it changed by another
// one tries again.
func ExampleRemote_CompareSwap() {
	ctx := context.Background()
	nodes, closeAll := domains(3)
	defer closeAll()

	w, err := nodes[0].Register(1, make([]byte, 8), memfifo.Atomic)
	check(err)
	var changing sync.WaitGroup
	for _, d := range nodes[1:] {
		changing.Go(func() {
			cell := d.Remote(w.Key())
			for range 100 {
				old := uint64(0) // a guess: the first answer corrects it
				for {
					seen, err := cell.CompareSwap(ctx, 0, old, min(old+7, 1000))
					check(err)
					if seen == old {
						break
					}
					old = seen
				}
			}
		})
	}
	changing.Wait()
	v, err := w.Load(0)
	check(err)
	fmt.Println("by sevens, and no further than", v)
	// Output: by sevens, and no further than 1000
}

// A message is written into the receiver's memory, and a record behind it says how long it is.
func ExampleDomain_PostPut() {
	ctx := context.Background()
	nodes, closeAll := domains(2)
	defer closeAll()

	memory, err := nodes[1].Register(1, make([]byte, 1<<20), memfifo.Write)
	check(err)
	arrived, err := nodes[1].NewFIFO(1, make([]byte, 4096))
	check(err)

	message, sent := bytes.Repeat([]byte("rawlane "), 1000), make(chan error, 1)
	check(nodes[0].PostPut(&memfifo.PostedPut{
		Window: memory.Key(), Data: message,
		Tail: arrived.Key(), Record: binary.BigEndian.AppendUint32(nil, uint32(len(message))),
		Sent: func(err error) *memfifo.PostedPut { sent <- err; return nil },
	}))
	fmt.Println("sent:", <-sent)

	rec := make([]byte, 4)
	_, err = arrived.Pop(ctx, rec)
	check(err)
	fmt.Println(string(memory.Bytes()[:binary.BigEndian.Uint32(rec)][:15]))
	// Output:
	// sent: <nil>
	// rawlane rawlane
}

// A token goes round: each node waits for it, adds one, and passes it on. A notified node sees the
// bytes written before.
func ExampleRemote_PutNotify() {
	ctx := context.Background()
	nodes, closeAll := domains(4)
	defer closeAll()

	var windows []*memfifo.Window
	for _, d := range nodes {
		w, err := d.Register(1, make([]byte, 1), memfifo.Write)
		check(err)
		windows = append(windows, w)
	}
	const rounds = 10
	var passing sync.WaitGroup
	for k, d := range nodes {
		passing.Go(func() {
			mine, next := windows[k], d.Remote(windows[(k+1)%len(nodes)].Key())
			if k == 0 {
				check(next.PutNotify(ctx, 0, []byte{1}))
			}
			for seen := range uint64(rounds) {
				_, err := mine.Wait(ctx, seen) // for one more than were seen
				check(err)
				if k == 0 && seen == rounds-1 {
					fmt.Println("the token is", mine.Bytes()[0])
					break
				}
				check(next.PutNotify(ctx, 0, []byte{mine.Bytes()[0] + 1}))
			}
		})
	}
	passing.Wait()
	// Output: the token is 40
}

// A FIFO's owner takes what its senders push until none of them is left.
func ExampleFIFO_Expect() {
	ctx := context.Background()
	nodes, closeAll := domains(3)
	defer closeAll()

	q, err := nodes[0].NewFIFO(1, make([]byte, 1<<10))
	check(err)
	check(q.Expect(1, 2))
	for _, d := range nodes[1:] {
		check(d.Remote(q.Key()).Push(ctx, []byte("work")))
		check(d.Close()) // it has flushed, and leaves
	}
	var b [16]byte
	for {
		n, err := q.Pop(ctx, b[:])
		if errors.Is(err, memfifo.ErrPeerDown) {
			fmt.Println(err)
			break
		}
		check(err)
		fmt.Println(string(b[:n]))
	}
	// Output:
	// work
	// work
	// no sender is left: node 1 (left), node 2 (left)
}
