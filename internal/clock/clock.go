// Package clock is the only reader of the clock. Protocol cores do not import it: whoever drives them
// reads it once for a batch of events and hands the instant in.
package clock

import (
	"time"

	"github.com/rawlane/rawlane/internal/mono"
)

// origin is just before the first instant, which makes every one of them differ from the zero Time.
var origin = time.Now().Add(-time.Nanosecond)

// Now returns the present instant of this process's monotonic clock: it does not jump when the wall
// clock is set, and inside a testing/synctest bubble it is the bubble's. It does not allocate. Measured:
// 25 ns, against 45 ns for time.Now (go test -bench . ./internal/clock).
func Now() mono.Time { return mono.At(time.Since(origin)) }
