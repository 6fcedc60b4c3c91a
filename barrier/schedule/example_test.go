package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

func ExampleAlgorithm_Steps() {
	for rank := range 3 {
		fmt.Println(rank, schedule.Tree(3).Steps(rank, 3))
	}
	// Output:
	// 0 [{[{1 0} {2 0}] [{-1 1 0}]}]
	// 1 [{[] [{0 0 0}]} {[{0 1}] []}]
	// 2 [{[] [{0 0 0}]} {[{0 1}] []}]
}

// An algorithm of one's own: a token that goes round twice.
func ExampleNew() {
	ring := schedule.New("ring", func(rank, size int) (steps []schedule.Step) {
		for round := range 2 {
			var s schedule.Step
			if rank > 0 || round > 0 {
				previous := round - (size-rank)/size // rank 0 awaits what went out a round earlier
				s.Await = []schedule.Receive{{From: (rank + size - 1) % size, Label: uint8(previous)}}
			}
			if rank < size-1 || round == 0 {
				s.Notify = []schedule.Send{{To: (rank + 1) % size, Label: uint8(round)}}
			}
			steps = append(steps, s)
		}
		return steps
	})
	fmt.Println(ring.Check(5), ring.Frames(5))
	// Output: <nil> 9
}

func ExampleChoices() {
	p := schedule.LogP{Os: 3 * time.Microsecond, L: 17500 * time.Nanosecond, Or: 9500 * time.Nanosecond}
	for _, c := range schedule.Choices(16, p)[:2] {
		fmt.Println(c.Algorithm, c.Cost, c.Frames)
	}
	// Output:
	// shuffle 120µs 64
	// tree:4 128µs 16
}

// Processes that share the cores of one machine want few messages; on machines of their own, short
// chains.
func ExampleAutoShared() {
	fmt.Println(schedule.Auto().For(16))
	fmt.Println(schedule.AutoShared(2), schedule.AutoShared(2).For(16))
	// Output:
	// tree:4
	// auto:2 concurrent
}

// A table that was measured, and edited: groups that it does not have are chosen for by the model.
func ExampleParseTable() {
	table, err := schedule.ParseTable("barriers.table", strings.NewReader(`
# ranks  algorithm  us     where they run
4        star       1.31   1 host: 4 ranks on 2 cores
16       tree:4     -                                  # wherever they run
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	here := schedule.OneHost(4, 2, schedule.MemoryCosts)
	fmt.Println(table.Choose(here, 4), table.Choose(schedule.Shape{}, 16), table.Choose(schedule.Shape{}, 64))
	// Output: star tree:4 tree:3
}
