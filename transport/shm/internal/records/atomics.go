//go:build !mips && !mipsle && (!arm || arm.7)

package records

// Atomic reports whether the atomics of 64 bits are so between processes that share memory.
const Atomic = true
