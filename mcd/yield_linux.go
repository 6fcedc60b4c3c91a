package mcd

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// yield lets another process have this core. It does not tell Go's scheduler, as a system call
// that may block would: it returns as soon as the core is free again. The scheduler would hand
// this goroutine's processor to another thread meanwhile, and two threads would compete where
// one was too many.
func yield() { _, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// callNothing is a system call that does nothing.
func callNothing() { _, _, _ = syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0) }
