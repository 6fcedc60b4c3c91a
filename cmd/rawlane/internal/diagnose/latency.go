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
// virtual one, is no finding; what may not be read is one that says so.

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
// interrupts. Where /sys is of another network namespace, as it may be in one that has not mounted
// its own, an interface of this name there is not the one here.
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
	deepest, exit, held := "", int64(0), t.dmaLatency()
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
	return []finding{{
		Name:   "C-states",
		Reason: fmt.Sprintf("an idle core takes up to %d us to wake from %s", exit, deepest),
		Gain: fmt.Sprintf("up to %d us for a message that is awaited asleep, and its p99 most; "+
			"nothing where ends spin", exit),
		Cure: fmt.Sprintf("sudo cpupower idle-set -D %d; "+
			"or, while a program runs, hold /dev/cpu_dma_latency open with 0 in it", longExit),
	}}
}

// dmaLatency is the limit that some program holds, in us.
func (t tuning) dmaLatency() int64 {
	b, err := fs.ReadFile(t.files, "dev/cpu_dma_latency")
	if err != nil || len(b) < 4 {
		return noLimit
	}
	return int64(int32(binary.NativeEndian.Uint32(b)))
}

// irqs lists a NIC's interrupts, by its device's or by their names.
func (t tuning) irqs(nic string) (numbers []int) {
	entries, _ := fs.ReadDir(t.files, path.Join("sys/class/net", nic, "device/msi_irqs")) // none, perhaps
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) > 0 {
		slices.Sort(numbers)
		return numbers
	}
	device := nic // of virtio its interrupts have the name: virtio1
	if target, err := fs.ReadLink(t.files, path.Join("sys/class/net", nic, "device")); err == nil {
		device = path.Base(target)
	}
	table, _ := t.read("proc/interrupts")
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasSuffix(fields[len(fields)-1], "-config") {
			continue // or no frames' interrupt
		}
		if !ownedBy(fields[len(fields)-1], nic) && !ownedBy(fields[len(fields)-1], device) {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":")); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// ownedBy reports whether an interrupt's name is a NIC's: eth0, or eth0-TxRx-1.
func ownedBy(action, nic string) bool {
	rest, ok := strings.CutPrefix(action, nic)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == ':')
}

// interrupts looks for interrupts that are handled far from the NIC, or move about.
func (t tuning) interrupts(nic string) (all []finding) {
	const name = "IRQ placement"
	near := t.nearCores(nic)
	var far, moving []int
	where := map[int]string{}
	for _, irq := range t.irqs(nic) {
		file := fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq)
		text, err := t.read(file)
		if err != nil {
			return []finding{{
				Name:   name,
				Reason: fmt.Sprintf("cannot tell where the interrupts of %s are handled: %v", nic, err),
				Cure:   "run as root",
			}}
		}
		cores := parseCores(text)
		where[irq] = text
		switch {
		case len(cores) == 0:
		case len(near) > 0 && !isSubset(cores, near):
			far = append(far, irq)
		case len(cores) > 1:
			moving = append(moving, irq)
		}
	}
	if len(far) > 0 {
		all = append(all, finding{Name: name,
			Reason: fmt.Sprintf("IRQ %d of %s may be handled on cores %s, and the NIC is beside cores %s",
				far[0], nic, where[far[0]], formatCores(near)),
			Gain: "0.3 to 1 us a frame, which crosses the machine otherwise",
			Cure: placement(far, near)})
	}
	if len(moving) > 0 {
		all = append(all, finding{Name: name,
			Reason: fmt.Sprintf("IRQ %d of %s may move among cores %s: "+
				"a program on one of them is disturbed, and its cache is cold", moving[0], nic, where[moving[0]]),
			Gain: "some tenths of a us a frame, and p99 where a program spins on that core",
			Cure: placement(moving, parseCores(where[moving[0]]))})
	}
	return all
}

// placement is the command that puts interrupts on the first of some cores, and a program beside
// it.
func placement(irqs, cores []int) string {
	cure := "sudo systemctl stop irqbalance;"
	for _, irq := range irqs {
		cure += fmt.Sprintf(" echo %d | sudo tee /proc/irq/%d/smp_affinity_list;", cores[0], irq)
	}
	if len(cores) > 1 {
		return cure + fmt.Sprintf(" then: taskset -c %d ./program", cores[1])
	}
	return strings.TrimSuffix(cure, ";")
}

// nearCores are those of the memory that the NIC is beside; none where the machine has one memory.
func (t tuning) nearCores(nic string) []int {
	node, ok := t.number(path.Join("sys/class/net", nic, "device/numa_node"))
	if !ok || node < 0 {
		return nil
	}
	list, _ := t.read(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node)) // without it there is one
	return parseCores(list)
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
		Gain:   "1 to 5 us a message over udp, an interrupt's time; nothing over ring and packet",
		Cure:   "sudo sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
	}}
}

// parseCores reads a list of cores such as 0-3,8; nil if it is none.
func parseCores(list string) (cores []int) {
	for field := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(field), "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || to-from > maxCores {
			return nil
		}
		for core := from; core <= to; core++ {
			cores = append(cores, core)
		}
	}
	return cores
}

// maxCores bounds a range of cores: more than any machine has.
const maxCores = 1 << 16

// formatCores is its inverse.
func formatCores(cores []int) string {
	var fields []string
	for i := 0; i < len(cores); {
		end := i
		for end+1 < len(cores) && cores[end+1] == cores[end]+1 {
			end++
		}
		if end == i {
			fields = append(fields, strconv.Itoa(cores[i]))
		} else {
			fields = append(fields, fmt.Sprintf("%d-%d", cores[i], cores[end]))
		}
		i = end + 1
	}
	return strings.Join(fields, ",")
}

// isSubset reports whether all of some cores are among others.
func isSubset(some, others []int) bool {
	return !slices.ContainsFunc(some, func(core int) bool { return !slices.Contains(others, core) })
}
