// Package mono has the instant type of the protocol cores. It reads no clock.
package mono

import (
	"fmt"
	"time"
)

// Time is an instant on some monotonic clock: real or simulated. It is not a duration: now.Add(d) compiles,
// now + d does not. The zero Time is the clock's origin, and before every instant that a clock shows.
type Time struct{ ns int64 }

// At returns the instant that lies d after the origin.
func At(d time.Duration) Time { return Time{int64(d)} }

// Add returns the instant d after t.
func (t Time) Add(d time.Duration) Time { return Time{t.ns + int64(d)} }

// Sub returns how long after u the instant t is.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t.ns - u.ns) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t.ns < u.ns }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t.ns > u.ns }

// IsZero reports whether t is the origin.
func (t Time) IsZero() bool { return t.ns == 0 }

// Since returns how long after the origin t is.
func (t Time) Since() time.Duration { return time.Duration(t.ns) }

// String formats t as its distance from the origin.
func (t Time) String() string { return fmt.Sprint(t.Since()) }
