package launch

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// pinned is the environment variable with the core that pinSelf has moved the process to.
const pinned = "RAWLANE_PINNED"

// pinSelf moves all threads of this process to one core. The Go runtime starts threads at any time,
// so the process restarts in place (execve): new threads inherit the affinity of the first.
func pinSelf(core int) error {
	if os.Getenv(pinned) == strconv.Itoa(core) {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("move to core %d: %w", core, err)
	}
	if os.Getenv(cli.EnvLocal) != "" { // as the test bed had set for the thread that starts the process
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("end with the parent: %w", err)
		}
	}
	env := append(os.Environ(), pinned+"="+strconv.Itoa(core))
	return fmt.Errorf("start anew on core %d: %w", core, syscall.Exec("/proc/self/exe", os.Args, env))
}

// AllowedCores lists the cores that this process may run on.
func AllowedCores() (cores []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for core := 0; len(cores) < set.Count(); core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// YieldCore gives the core to another ready thread or goroutine.
func YieldCore() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
}
