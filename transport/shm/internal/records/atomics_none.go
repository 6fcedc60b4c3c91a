//go:build mips || mipsle || (arm && !arm.7)

package records

// Atomic reports whether the atomics of 64 bits are so between processes that share memory.
// Go's are a lock of the program's on these processors.
const Atomic = false
