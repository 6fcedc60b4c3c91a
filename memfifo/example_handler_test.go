package memfifo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
)

// A function takes the records that other nodes push, in place of a FIFO. Its key is public: a node
// that knows the id may push.
func ExampleDomain_Handle() {
	all, closeAll := domains(2)
	defer closeAll()

	var done mcd.Completion
	h, err := all[1].Handle(7, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
		fmt.Printf("%v: %s\n", from, rec)
		done.Complete(nil)
	}})
	check(err)
	ctx := context.Background()
	check(all[0].Remote(memfifo.PublicKey(1, 7)).Push(ctx, []byte("hello")))
	check(h.Await(ctx, &done))
	// Output: node 0: hello
}

// A node restarts. Pushes to it fail until somebody has taken note; PushReconnect does, and the
// record is for the node's next life.
func ExampleRemote_PushReconnect() {
	ctx := context.Background()
	eps, closeEndpoints, err := mcdtest.Start(2, mcdtest.Config{})
	check(err)
	handled, down := make(chan string, 1), make(chan memfifo.Reason, 1)
	server := func() *memfifo.Domain {
		d, err := memfifo.Open(eps[1], memfifo.Config{})
		check(err)
		_, err = d.Handle(7, memfifo.HandlerConfig{
			Public: true, Record: func(_ memfifo.Sender, rec []byte) { handled <- string(rec) },
		})
		check(err)
		return d
	}
	client, err := memfifo.Open(eps[0], memfifo.Config{})
	check(err)
	_, err = client.Handle(7, memfifo.HandlerConfig{
		Record: func(memfifo.Sender, []byte) {}, Down: func(err *memfifo.PeerDownError) { down <- err.Reason },
	})
	check(err)
	r := client.Remote(memfifo.PublicKey(1, 7))

	d := server()
	check(r.Push(ctx, []byte("one")))
	fmt.Println(<-handled)
	check(d.Close())
	fmt.Println(<-down, "the domain:", errors.Is(r.Push(ctx, []byte("two")), memfifo.ErrPeerDown))
	d = server()
	check(r.PushReconnect(ctx, []byte("three"), nil))
	fmt.Println(<-handled)

	check(client.Flush(ctx))
	check(client.Close())
	check(d.Close())
	check(closeEndpoints())
	// Output:
	// one
	// left the domain: true
	// three
}
