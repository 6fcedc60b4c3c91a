package mcd

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID identifies the boot of the kernel that this process runs on.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" if it cannot be read
	return strings.TrimSpace(string(b))
}

// usableCores returns the cores that this process may run on, and how many these are.
func usableCores() (set uint64, count int) {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &cpus); err != nil {
		return allCores(runtime.NumCPU()), runtime.NumCPU()
	}
	return setOf(&cpus)
}

// setOf returns a kernel's set of cores as a Place's, and how many these are.
func setOf(cpus *unix.CPUSet) (set uint64, count int) {
	count = cpus.Count()
	for core, left := 0, count; left > 0; core++ {
		if cpus.IsSet(core) {
			set |= 1 << (core % 64)
			left--
		}
	}
	return set, count
}
