// Package monotime has the instant type of the protocol cores.
//
// A core never reads a clock. Instants are arguments: from package clock in a running program, from
// the event queue in a simulation, from a fuzzer's bytes. An instant is not a time.Duration, so the
// compiler keeps them apart: now.Add(timeout) and now.Sub(start) compile, now+timeout does not.
package monotime

import (
	"cmp"
	"math"
	"time"
)

// Time is an instant on a monotonic clock, in nanoseconds since that clock's origin. Instants of
// different clocks (two processes, two simulations) do not compare. Time is comparable with == and
// keys a map.
//
// The zero Time is the origin. Package clock never returns it, so a field may use it for "not yet";
// arithmetic on it is valid. Simulations and tests make instants with At.
type Time struct{ ns int64 }

// At returns the instant d after the origin.
func At(d time.Duration) Time { return Time{int64(d)} }

// Since returns how long after the origin t is.
func (t Time) Since() time.Duration { return time.Duration(t.ns) }

// Add returns t moved by d. It stops at the first and last instant, 292 years from the origin.
func (t Time) Add(d time.Duration) Time {
	sum := t.ns + int64(d)
	if d > 0 && sum < t.ns {
		return Time{math.MaxInt64}
	}
	if d < 0 && sum > t.ns {
		return Time{math.MinInt64}
	}
	return Time{sum}
}

// Sub returns the time from u to t, negative if u is later.
// Like time.Time.Sub it stops at the longest Duration.
func (t Time) Sub(u Time) time.Duration {
	d := t.ns - u.ns
	switch {
	case (d < 0) == (t.ns < u.ns):
		return time.Duration(d)
	case t.ns < u.ns:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t.ns < u.ns }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t.ns > u.ns }

// Compare returns -1, 0 or +1 as t is earlier than u, the same, or later.
func (t Time) Compare(u Time) int { return cmp.Compare(t.ns, u.ns) }

// IsZero reports whether t is the zero Time.
func (t Time) IsZero() bool { return t.ns == 0 }

// String formats t as the time since the origin, such as 1.5ms.
func (t Time) String() string { return t.Since().String() }
