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

// pinned marks the environment of a process that pinSelf has moved.
const pinned = "RAWLANE_PINNED"

// pinSelf has this process, all threads of it, run on one core from now on. A running process has
// threads already that would have to be moved one by one, and new ones might slip through; so it
// starts itself anew, in place.
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
	if os.Getenv(cli.EnvLocal) != "" { // testbed asked for this, of the thread that this one takes the place of
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

// YieldCore lets whoever else is ready have this core.
func YieldCore() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
}
