package mcd_test

import (
	"fmt"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/sim/mcd"
)

// Two networks save the concurrent barrier interrupts, and cost the 3-ary tree some (MCD §5.2).
func ExampleModel_Switched() {
	m := mcd.Fitted()
	for _, a := range []schedule.Algorithm{schedule.Concurrent(), schedule.Heap(2)} {
		fmt.Println(a, m.Switched(a, 15), m.Switched(schedule.Stripe(a, 2), 15))
	}
	// Output:
	// concurrent 169.402µs 152.282µs
	// heap:2 158.682µs 170.082µs
}
