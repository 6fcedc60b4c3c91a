// Package clock is the only reader of the clock. Protocol cores do not import it: whoever drives
// them reads it once for a batch of events and hands the instant in.
package clock

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// origin is just before the first instant, which makes every one of them differ from the zero Time.
var origin = time.Now().Add(-time.Nanosecond)

// bubble moves the instants of a testing/synctest bubble, whose time starts in the year 2000, past
// the zero Time, too.
const bubble = 100 * 365 * 24 * time.Hour

// Now returns the present instant of this process's monotonic clock: later than the zero Time, not
// moved when the wall clock is set, and the bubble's inside a testing/synctest bubble. It does not
// allocate. Measured: 24 ns, against 44 ns for time.Now (go test -bench . ./internal/clock).
func Now() monotime.Time {
	d := time.Since(origin)
	if d < 0 {
		d += bubble
	}
	return monotime.At(d)
}
