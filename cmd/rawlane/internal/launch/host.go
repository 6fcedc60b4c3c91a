package launch

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Host describes the machine under a benchmark.
type Host struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	OS      string `json:"os"`
	Kernel  string `json:"kernel"`
	Go      string `json:"go"`
	Rawlane string `json:"rawlane"`
	NIC     string `json:"nic,omitempty"`
	Driver  string `json:"driver,omitempty"`
	MTU     int    `json:"mtu,omitempty"`
}

// ThisHost describes this machine and, unless nic is empty, that network interface.
func ThisHost(nic string, mtu int) Host {
	h := Host{
		CPU:    firstField("/proc/cpuinfo", "model name", "Processor"),
		Cores:  cores(),
		OS:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: ReadLine("/proc/sys/kernel/osrelease"),
		Go:     runtime.Version(),
		NIC:    nic,
		MTU:    mtu,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		h.Rawlane = info.Main.Version
	}
	if nic != "" {
		h.Driver = AskDriver(nic).Driver
	}
	return h
}

// String puts h on one line.
func (h Host) String() string {
	s := fmt.Sprintf("%d cores, %s %s", h.Cores, h.OS, h.Kernel)
	if h.MTU != 0 {
		s += fmt.Sprintf(", MTU %d", h.MTU)
	}
	if h.NIC != "" {
		s += fmt.Sprintf(", %s (%s)", h.NIC, h.Driver)
	}
	return s
}

// cores returns the number of cores online, or else of those that this process may use.
func cores() int {
	b, err := os.ReadFile("/proc/cpuinfo")
	if n := strings.Count("\n"+string(b), "\nprocessor"); err == nil && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// ReadLine returns the first line of a file; "" without the file.
func ReadLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// firstField returns the value of the first "name : value" line with one of the names.
func firstField(path string, names ...string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(names, strings.TrimSpace(name)) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
