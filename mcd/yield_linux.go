package mcd

import "golang.org/x/sys/unix"

// yield lets another process have this core. It does not tell the scheduler, as a system call would that may block: this
// one returns as soon as the core is ours again. What the scheduler would do meanwhile, hand this goroutine's processor to
// another thread, makes two threads compete where one was too many.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
