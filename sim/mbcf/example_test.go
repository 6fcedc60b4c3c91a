package mbcf_test

import (
	"fmt"

	"github.com/rawlane/rawlane/sim/mbcf"
)

// A message of 4 bytes and its answer: the hosts take most of the time.
func ExampleModel_RoundTrip() {
	m := mbcf.Fitted()
	fmt.Println(m.RoundTrip(4))
	m.MPI.Host = 0
	fmt.Println(m.RoundTrip(4))
	// Output:
	// 84.452µs
	// 26.952µs
}
