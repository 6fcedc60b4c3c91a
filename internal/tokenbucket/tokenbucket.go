// Package tokenbucket bounds how often something is done that strangers can cause.
package tokenbucket

import "time"

// Bucket lets through rate events a second, and burst at once. It belongs to one goroutine.
type Bucket struct {
	rate, burst float64
	tokens      float64
	last        int64 // ns
}

// New returns a full bucket.
func New(rate, burst float64) Bucket { return Bucket{rate: rate, burst: burst, tokens: burst} }

// Take takes a token at an instant, in nanoseconds since any other, or returns false if there is
// none. Where the clock stands or goes back no time passes.
func (b *Bucket) Take(ns int64) bool {
	if ns > b.last {
		b.tokens = min(b.burst, b.tokens+float64(ns-b.last)*b.rate/float64(time.Second))
		b.last = ns
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
