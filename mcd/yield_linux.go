package mcd

import "golang.org/x/sys/unix"

// yield lets another process have this core. It goes through Syscall, which tells the scheduler: the call
// may take as long as the other process's time slice.
func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
