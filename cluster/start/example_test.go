package start_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mpi"
)

// Each node adds its number. Nobody has started this program as one of several: all four nodes are
// in this process.
func ExampleRun() {
	err := start.Run(context.Background(), start.Config{Nodes: 4}, func(ctx context.Context, n *start.Node) error {
		world, err := mpi.Open(n.Endpoint, mpi.Config{})
		if err != nil {
			return err
		}
		sum := make([]int64, 1)
		if err := mpi.Allreduce(ctx, world.Comm(), []int64{int64(n.Node())}, sum, mpi.Sum); err != nil {
			return err
		}
		if n.Node() == 0 {
			fmt.Printf("%d nodes, together %d\n", n.Size(), sum[0])
		}
		return world.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 4 nodes, together 6
}

// Nodes tell each other what they need to know, such as the keys of windows.
func ExampleNode_Exchange() {
	err := start.Run(context.Background(), start.Config{Nodes: 3}, func(ctx context.Context, n *start.Node) error {
		keys, err := n.Exchange(ctx, fmt.Appendf(nil, "key of %d", n.Node()))
		if n.Node() == 0 {
			fmt.Printf("%s\n", keys)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [key of 0 key of 1 key of 2]
}
