// Command checkpoint goes on when a process dies, without a disk. Each rank computes some blocks of
// numbers, and after every 10 steps puts a copy of them into the memory of the next rank. Rank 2
// dies after a while. The others revoke the communicator, so that nobody waits for one who has seen
// that, shrink it, go back to the last copy that all have, and share the dead one's blocks. The
// result is compared with that of one process.
//
//	go run ./examples/checkpoint
//	go build ./examples/checkpoint && rawlane run -n 4 --keep-going ./checkpoint -kill
//
// With -kill rank 2 ends as by "kill -9", for which it needs a process of its own.
//
// Source: Bland et al., IJHPCA 27 (2013) (ULFM); Plank, Li, Puening, "Diskless Checkpointing", IEEE
// TPDS 9 (1998).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mpi"
)

const (
	steps       = 100
	copyEvery   = 10
	blocks      = 12
	cells       = 500 // of a block
	victim      = 2
	diesAt      = 57
	peerTimeout = 2 * time.Second // more than a busy machine lets a process stand still
)

func main() {
	kill := flag.Bool("kill", false, "rank 2 ends its process")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flag.Arg(0))
		flag.Usage()
		os.Exit(2)
	}
	start.Main(start.Config{Nodes: 4, Limit: 30 * time.Second}, func(ctx context.Context, n *start.Node) error {
		w, err := mpi.Open(n.Endpoint, mpi.Config{PeerTimeout: peerTimeout})
		if err != nil {
			return err
		}
		p := program{c: w.Comm(), die: n.Endpoint.Close}
		if *kill {
			p.die = killMyself
		}
		err = p.run(ctx, n.Node() == victim)
		if errors.Is(err, errDead) {
			return nil
		}
		return errors.Join(err, w.Close())
	})
}

// killMyself ends the process at once, or says why it cannot.
func killMyself() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err == nil {
		select {}
	}
	return err
}
