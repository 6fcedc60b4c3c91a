//go:build linux

package harness

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes where a benchmark runs: cores, kernel, and the compiler.
func Machine() string {
	cores, model := 0, ""
	cpus, _ := os.ReadFile("/proc/cpuinfo") // without it the scheduler's number has to do
	for line := range strings.Lines(string(cpus)) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			model = " (" + strings.TrimSpace(value) + ")"
		}
	}
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // a machine without it is described by the rest
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return fmt.Sprintf("%d cores%s, Linux %s, %s", cores, model, kernel, runtime.Version())
}
