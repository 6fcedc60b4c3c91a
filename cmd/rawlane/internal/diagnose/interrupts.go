package diagnose

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// irqs lists the interrupts of a NIC's frames, by its device's or by their names. An interface
// without a device has none: what has its name is of another network namespace's.
func (t tuning) irqs(nic string) (numbers []int) {
	device := path.Join("sys/class/net", nic, "device")
	if _, err := fs.Lstat(t.files, device); err != nil {
		return nil
	}
	table, _ := t.read("proc/interrupts")
	names := actions(table)
	entries, _ := fs.ReadDir(t.files, path.Join(device, "msi_irqs")) // none, perhaps
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err == nil && (table == "" || names[n] != "") { // else the driver has not asked for it
			numbers = append(numbers, n)
		}
	}
	if len(entries) == 0 {
		owner := nic // of virtio its interrupts have the name: virtio1
		if target, err := fs.ReadLink(t.files, device); err == nil {
			owner = path.Base(target)
		}
		for n, name := range names {
			if ownedBy(name, nic) || ownedBy(name, owner) {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// trigger is what stands before an interrupt's action: 24-edge, and on some machines 24 Edge.
var trigger = regexp.MustCompile(`^(\d*(-[a-z-]+)?|Edge|Level)$`)

// actions are the last actions of the interrupts that have one, by number: what handles them. Those
// that tell of a change of the configuration are left out.
func actions(table string) map[int]string {
	all := make(map[int]string)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":"))
		action := fields[len(fields)-1]
		if err == nil && !trigger.MatchString(action) && !strings.HasSuffix(action, "-config") {
			all[n] = action
		}
	}
	return all
}

// ownedBy reports whether an interrupt's name is a NIC's: eth0, or eth0-TxRx-1.
func ownedBy(action, nic string) bool {
	rest, ok := strings.CutPrefix(action, nic)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == ':')
}

// irq is an interrupt: on which cores it may be handled, and on which of these it is. Many machines
// have chosen one, and stay with it.
type irq struct {
	number   int
	mask, on []int
}

func (t tuning) irq(number int) (irq, error) {
	folder := fmt.Sprintf("proc/irq/%d", number)
	mask, err := t.read(path.Join(folder, "smp_affinity_list"))
	if err != nil {
		return irq{}, err
	}
	i := irq{number: number, mask: parseCores(mask)}
	chosen, _ := t.read(path.Join(folder, "effective_affinity_list")) // not on each machine
	if i.on = parseCores(chosen); len(i.on) == 0 {
		i.on = i.mask
	}
	return i, nil
}

// interrupts looks for interrupts that are handled far from the NIC, or move about.
func (t tuning) interrupts(nic string) (all []finding) {
	const name = "IRQ placement"
	near := t.nearCores(nic)
	var far, moving []irq
	p := placement{cores: near, taken: make(map[int]int)}
	if len(near) == 0 {
		online, _ := t.read("sys/devices/system/cpu/online")
		p.cores = parseCores(online)
	}
	for _, number := range t.irqs(nic) {
		i, err := t.irq(number)
		if err != nil {
			return []finding{{
				Name:   name,
				Reason: fmt.Sprintf("cannot tell where the interrupts of %s are handled: %v", nic, err),
				Cure:   "run as root",
			}}
		}
		switch {
		case len(i.on) == 0:
		case len(near) > 0 && !isSubset(i.on, near):
			far = append(far, i)
		case len(i.on) > 1:
			moving = append(moving, i)
		default:
			p.taken[i.on[0]]++
		}
	}
	farTo, movingTo := p.place(far), p.place(moving)
	const cost = "; without irqbalance no interrupt of this machine follows the load, until it is started anew"
	if len(far) > 0 {
		all = append(all, finding{Name: name,
			Reason: fmt.Sprintf("IRQ %d of %s may be handled on cores %s, and the NIC is beside cores %s",
				far[0].number, nic, formatCores(far[0].on), formatCores(near)),
			Gain: "0.3 to 1 us a frame, which crosses the machine otherwise" + cost,
			Cure: p.command(far, farTo)})
	}
	if len(moving) > 0 {
		all = append(all, finding{Name: name,
			Reason: fmt.Sprintf("IRQ %d of %s may move among cores %s: a program on one of them is disturbed, "+
				"and its cache is cold", moving[0].number, nic, formatCores(moving[0].on)),
			Gain: "some tenths of a us a frame, and p99 where a program spins on that core" + cost,
			Cure: p.command(moving, movingTo)})
	}
	return all
}

// placement gives each of a NIC's interrupts a core: of those that it may be handled on, near the
// NIC, where there is one, and with as few others as possible.
type placement struct {
	cores []int       // near the NIC; nil: not known
	taken map[int]int // cores, and how many interrupts each has
}

// place returns the cores of some interrupts, in their order.
func (p *placement) place(irqs []irq) (to []int) {
	for _, i := range irqs {
		core := p.freest(p.fit(i))
		p.taken[core]++
		to = append(to, core)
	}
	return to
}

// fit lists the cores that fit an interrupt, which may be handled on some.
func (p *placement) fit(i irq) []int {
	if len(p.cores) == 0 {
		return i.mask
	}
	both := slices.DeleteFunc(slices.Clone(i.mask), func(core int) bool { return !slices.Contains(p.cores, core) })
	if len(both) == 0 {
		return p.cores
	}
	return both
}

// freest returns the first of the cores with the fewest interrupts.
func (p *placement) freest(cores []int) int {
	return slices.MinFunc(cores, func(a, b int) int { return p.taken[a] - p.taken[b] })
}

// command is what puts interrupts on cores, and a program on one that has none.
func (p *placement) command(irqs []irq, to []int) string {
	cure := "sudo systemctl stop irqbalance;"
	for k, i := range irqs {
		cure += fmt.Sprintf(" echo %d | sudo tee /proc/irq/%d/smp_affinity_list;", to[k], i.number)
	}
	cores := p.cores
	for _, i := range irqs {
		if len(p.cores) == 0 {
			cores = append(cores, i.mask...)
		}
	}
	if core := p.freest(cores); p.taken[core] == 0 {
		return cure + fmt.Sprintf(" then: taskset -c %d ./program", core)
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
