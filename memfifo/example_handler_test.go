package memfifo_test

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// A function takes the records that other nodes push, in place of a FIFO. Its key is public: a node
// that knows the id may push.
func ExampleDomain_Handle() {
	all, closeAll := domains(2)
	defer closeAll()

	var done mcd.Completion
	h, err := all[1].Handle(7, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
		fmt.Printf("node %d: %s\n", from.Node(), rec)
		done.Complete(nil)
	}})
	check(err)
	ctx := context.Background()
	check(all[0].Remote(memfifo.PublicKey(1, 7)).Push(ctx, []byte("hello")))
	check(h.Await(ctx, &done))
	// Output: node 0: hello
}
