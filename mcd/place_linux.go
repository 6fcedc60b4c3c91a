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
	for core := range len(cpus) * 64 {
		if cpus.IsSet(core) {
			set |= 1 << (core % 64)
		}
	}
	return set, cpus.Count()
}
