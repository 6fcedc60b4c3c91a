package diagnose

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Settings of the machine and of a NIC that make a message wait: each is a finding that says what
// to change, and what that gains. What a machine does not have, such as the idle states of a
// virtual one, is no finding, nor what may not be read: but where interrupts are handled, and what
// a program holds, of which it is said.

// tuning reads the settings from a tree of files, which is this machine's from / on.
type tuning struct{ files fs.FS }

// read returns a file's text; "" if it is not there.
func (t tuning) read(name string) (string, error) {
	b, err := fs.ReadFile(t.files, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// number returns the number in a file; ok is false without one.
func (t tuning) number(name string) (n int64, ok bool) {
	text, err := t.read(name)
	if err != nil || text == "" {
		return 0, false
	}
	n, err = strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// ofHost are the findings of the machine's processors.
func (t tuning) ofHost() []finding {
	return slices.Concat(t.governor(), t.idleStates())
}

// ofNIC are the findings of an interface with that address. Those that are software alone have no
// interrupts that could be placed or polled for. Where /sys is of another network namespace, as it
// may be in one that has not mounted its own, an interface of this name there has another address,
// and is not the one here.
func (t tuning) ofNIC(name, address string) []finding {
	if there, _ := t.read(path.Join("sys/class/net", name, "address")); there != address {
		return nil
	}
	return slices.Concat(t.interrupts(name), t.deferred(name), t.busyPolling(name))
}

// governor looks for processors that begin slowly.
func (t tuning) governor() []finding {
	slow, cores := map[string]bool{}, 0
	files, _ := fs.Glob(t.files, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") // the pattern is right
	for _, file := range files {
		if name, err := t.read(file); err == nil && name != "" && name != "performance" {
			slow[name] = true
			cores++
		}
	}
	if cores == 0 {
		return nil
	}
	var names []string
	for name := range slow {
		names = append(names, name)
	}
	slices.Sort(names)
	return []finding{{
		Name: "CPU governor",
		Reason: fmt.Sprintf("%d cores are governed by %s: after a rest they run slowly",
			cores, strings.Join(names, ", ")),
		Gain: "up to half of the processor's time for a message that comes after a rest",
		Cure: "sudo cpupower frequency-set -g performance",
	}}
}

const (
	// longExit is the wake-up of an idle core, in us, that is worth a finding: a message to a
	// program that sleeps takes some 20 us otherwise.
	longExit = 5
	// noLimit is what /dev/cpu_dma_latency says when nobody holds it: the kernel's default.
	noLimit = 2_000_000_000
)

// idleStates looks for idle cores that take long to wake up: by states that are on, and not beyond
// the limit that some program holds.
func (t tuning) idleStates() []finding {
	deepest, exit := "", int64(0)
	held, err := t.dmaLatency()
	states, _ := fs.Glob(t.files, "sys/devices/system/cpu/cpu0/cpuidle/state*") // likewise
	for _, state := range states {
		us, ok := t.number(path.Join(state, "latency"))
		if off, _ := t.number(path.Join(state, "disable")); !ok || off != 0 || us > held || us <= exit {
			continue
		}
		name, _ := t.read(path.Join(state, "name"))
		deepest, exit = name, us
	}
	if exit < longExit {
		return nil
	}
	reason := fmt.Sprintf("an idle core takes up to %d us to wake from %s", exit, deepest)
	if err != nil {
		reason += fmt.Sprintf(", unless some program holds /dev/cpu_dma_latency, which cannot be told: %v "+
			"(run as root)", err)
	}
	return []finding{{
		Name:   "C-states",
		Reason: reason,
		Gain: fmt.Sprintf("up to %d us for a message that is awaited asleep, and its p99 most; "+
			"nothing where ends spin", exit),
		Cure: fmt.Sprintf("sudo cpupower idle-set -D %d; "+
			"or, while a program runs, hold /dev/cpu_dma_latency open with 0 in it", longExit),
	}}
}

// dmaLatency is the limit that some program holds, in us; noLimit where there is no such file, or,
// with the error, where it may not be read.
func (t tuning) dmaLatency() (int64, error) {
	b, err := fs.ReadFile(t.files, "dev/cpu_dma_latency")
	switch {
	case errors.Is(err, fs.ErrPermission):
		return noLimit, err
	case err != nil || len(b) < 4:
		return noLimit, nil
	}
	return int64(int32(binary.NativeEndian.Uint32(b))), nil
}

// deferred looks for interrupts that the kernel puts off.
func (t tuning) deferred(nic string) []finding {
	ns, _ := t.number(path.Join("sys/class/net", nic, "gro_flush_timeout"))
	times, _ := t.number(path.Join("sys/class/net", nic, "napi_defer_hard_irqs"))
	if ns <= 0 {
		return nil
	}
	us := int64(math.Ceil(float64(ns) / 1e3))
	return []finding{{
		Name: "deferred interrupts",
		Reason: fmt.Sprintf("%s puts frames off for up to %d us (gro_flush_timeout), "+
			"and interrupts %d times (napi_defer_hard_irqs)", nic, us, times),
		Gain: fmt.Sprintf("up to %d us for a message that comes alone", us),
		Cure: fmt.Sprintf("echo 0 | "+
			"sudo tee /sys/class/net/%s/napi_defer_hard_irqs /sys/class/net/%s/gro_flush_timeout", nic, nic),
	}}
}

// busyPolling looks whether sockets that poll ask the NIC. Packet sockets have no such way.
func (t tuning) busyPolling(nic string) []finding {
	us, ok := t.number("proc/sys/net/core/busy_read")
	if !ok || us > 0 || len(t.irqs(nic)) == 0 {
		return nil
	}
	return []finding{{
		Name:   "busy polling",
		Reason: "udp links that spin wait for the NIC's interrupt: net.core.busy_read is 0",
		Gain: "1 to 5 us a message over udp, an interrupt's time; nothing over ring and packet; " +
			"busy_poll has each poll and select of all programs spin for that long",
		Cure: "sudo sysctl -w net.core.busy_read=50 net.core.busy_poll=50, " +
			"and start the programs anew: sockets keep the setting that they were opened with",
	}}
}
