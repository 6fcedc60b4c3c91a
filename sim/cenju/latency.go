package cenju

import "time"

// Step is a part of a latency.
type Step struct {
	Name  string
	Takes time.Duration
}

// HardwareLatency returns the steps of figure 7, from the sender's start to the packet's header in
// the receiver's memory, of about 1 us each, and then what it takes until the kernel has the
// interrupt. The paper has "about 7 us" for the former in all (§5.1).
func HardwareLatency() []Step {
	const about = time.Microsecond
	return []Step{
		{"processor sets the sender's queue pointer", about},
		{"sender reads the parcel's header", about},
		{"sender reads the parcel's body", about},
		{"network synchronises", about},
		{"network switches", about},
		{"receiver writes the packet's header", about},
		{"kernel has the interrupt", 5 * time.Microsecond},
	}
}

// UserLatency returns the steps of figure 8: a CJrmwrite of one word, from user to user, which is
// half of a round trip (§5.2). The third one is all of HardwareLatency.
func UserLatency() []Step {
	return []Step{
		{"user calls CJrmwrite, kernel begins (worked back)", 5 * time.Microsecond},
		{"kernel starts the sender (measured)", 8 * time.Microsecond},
		{"sender's start to the interrupt (measured)", 12 * time.Microsecond},
		{"receiver's kernel (measured)", 8 * time.Microsecond},
	}
}
