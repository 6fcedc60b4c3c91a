package sim_test

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/sim"
)

// Three nodes tell node 0 that they have arrived; it multicasts the release. The second tell that
// arrives at once waits for node 0's processor.
func Example() {
	var q sim.Queue
	var n *sim.Network[string]
	told := 0
	n = sim.NewNetwork(&q, sim.Config{
		Nodes: 4, Os: 3 * time.Microsecond, L: 17500 * time.Nanosecond, Or: 9500 * time.Nanosecond,
	}, func(to, from, nic int, m string) {
		fmt.Printf("%v: %d has %q from %d\n", q.Now(), to, m, from)
		if to != 0 {
			return
		}
		if told++; told == 3 {
			n.Multicast(0, nic, "release")
		}
	})
	for node := 1; node < 4; node++ {
		n.Send(node, 0, 0, "tell")
	}
	q.Run(q.Now().Add(time.Second))
	fmt.Printf("%+v\n", n.Counters())
	// Output:
	// 30µs: 0 has "tell" from 1
	// 39.5µs: 0 has "tell" from 2
	// 49µs: 0 has "tell" from 3
	// 79µs: 1 has "release" from 0
	// 79µs: 2 has "release" from 0
	// 79µs: 3 has "release" from 0
	// {Sent:4 Delivered:6 Lost:0 Duplicated:0 Reordered:0 Delayed:0 Corrupted:0 Cut:0 Misrouted:0 Burst:0 Overrun:0}
}

// A timer is an event; a lost message shows in the counters.
func ExampleNetwork_Cut() {
	var q sim.Queue
	n := sim.NewNetwork(&q, sim.Config{Nodes: 2, L: 10 * time.Microsecond}, func(to, _, _ int, m string) {
		fmt.Printf("%v: %s\n", q.Now(), m)
	})
	n.Cut(0, 1, true)
	n.Send(0, 1, 0, "hello")
	q.After(time.Millisecond, func() {
		n.Cut(0, 1, false)
		n.Send(0, 1, 0, "hello again")
	})
	for q.Step() {
	}
	fmt.Println("cut:", n.Counters().Cut)
	// Output:
	// 1.01ms: hello again
	// cut: 1
}
