package diagnose

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is a tree of files, by name.
func machine(files map[string]string) tuning {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tuning{all}
}

// serverMAC is the address of its NIC.
const serverMAC = "02:00:00:00:00:45"

// server is a machine where nothing is set for latency: two memories with eight cores each, and a
// NIC beside the first.
func server() map[string]string {
	return map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state0/name":      "POLL\n", "sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n", "sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state2/name": "C6\n", "sys/devices/system/cpu/cpu0/cpuidle/state2/latency": "133\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state2/disable": "0\n",
		"sys/class/net/eth0/address":                         serverMAC + "\n",
		"sys/class/net/eth0/device/numa_node":                "0\n",
		"sys/devices/system/node/node0/cpulist":              "0-7\n",
		"sys/class/net/eth0/device/msi_irqs/45":              "", "sys/class/net/eth0/device/msi_irqs/46": "",
		"proc/irq/45/smp_affinity_list":           "0-15\n",
		"proc/irq/46/smp_affinity_list":           "2-3\n",
		"sys/class/net/eth0/gro_flush_timeout":    "20500\n",
		"sys/class/net/eth0/napi_defer_hard_irqs": "2\n",
		"proc/sys/net/core/busy_read":             "0\n",
	}
}

// text is findings, a line each.
func text(all []finding) string {
	var b strings.Builder
	for _, f := range all {
		b.WriteString(strings.Join([]string{f.Name, f.Reason, f.Gain, f.Cure}, " | ") + "\n")
	}
	return b.String()
}

// Each finding says what it found, what to gain, and the command that changes it.
func TestTuning(t *testing.T) {
	m := machine(server())
	got := text(m.ofHost()) + text(m.ofNIC("eth0", serverMAC))
	want := `CPU governor | 2 cores are governed by powersave: after a rest they run slowly | up to half of the processor's time for a message that comes after a rest | sudo cpupower frequency-set -g performance
C-states | an idle core takes up to 133 us to wake from C6 | up to 133 us for a message that is awaited asleep, and its p99 most; nothing where ends spin | sudo cpupower idle-set -D 5; or, while a program runs, hold /dev/cpu_dma_latency open with 0 in it
IRQ placement | IRQ 45 of eth0 may be handled on cores 0-15, and the NIC is beside cores 0-7 | 0.3 to 1 us a frame, which crosses the machine otherwise; without irqbalance no interrupt of this machine follows the load, until it is started anew | sudo systemctl stop irqbalance; echo 0 | sudo tee /proc/irq/45/smp_affinity_list; then: taskset -c 1 ./program
IRQ placement | IRQ 46 of eth0 may move among cores 2-3: a program on one of them is disturbed, and its cache is cold | some tenths of a us a frame, and p99 where a program spins on that core; without irqbalance no interrupt of this machine follows the load, until it is started anew | sudo systemctl stop irqbalance; echo 2 | sudo tee /proc/irq/46/smp_affinity_list; then: taskset -c 1 ./program
deferred interrupts | eth0 puts frames off for up to 21 us (gro_flush_timeout), and interrupts 2 times (napi_defer_hard_irqs) | up to 21 us for a message that comes alone | echo 0 | sudo tee /sys/class/net/eth0/napi_defer_hard_irqs /sys/class/net/eth0/gro_flush_timeout
busy polling | udp links that spin wait for the NIC's interrupt: net.core.busy_read is 0 | 1 to 5 us a message over udp, an interrupt's time; nothing over ring and packet; busy_poll has each poll and select of all programs spin for that long | sudo sysctl -w net.core.busy_read=50 net.core.busy_poll=50, and start the programs anew: sockets keep the setting that they were opened with
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What is set for latency is no finding, nor what the machine does not have.
func TestTuning_Silent(t *testing.T) {
	held := make([]byte, 4)
	binary.NativeEndian.PutUint32(held, 2)
	for name, change := range map[string]struct {
		files map[string]string
		not   string // of the findings of server
	}{
		"performance": {map[string]string{
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
			"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n"}, "CPU governor"},
		"deep states are off":         {map[string]string{"sys/devices/system/cpu/cpu0/cpuidle/state2/disable": "1\n"}, "C-states"},
		"a program holds the latency": {map[string]string{"dev/cpu_dma_latency": string(held)}, "C-states"},
		"interrupts have a core": {map[string]string{
			"proc/irq/45/smp_affinity_list": "1\n", "proc/irq/46/smp_affinity_list": "2\n"}, "IRQ placement"},
		"nothing is deferred": {map[string]string{"sys/class/net/eth0/gro_flush_timeout": "0\n"}, "deferred interrupts"},
		"sockets poll":        {map[string]string{"proc/sys/net/core/busy_read": "50\n"}, "busy polling"},
	} {
		files := server()
		for file, text := range change.files {
			files[file] = text
		}
		m := machine(files)
		got := text(m.ofHost()) + text(m.ofNIC("eth0", serverMAC))
		if strings.Contains(got, change.not) {
			t.Errorf("%s: %s", name, got)
		}
		if strings.Count(got, "\n") < 4 {
			t.Errorf("%s: the other findings are gone: %s", name, got)
		}
	}
	nothing := machine(nil)
	if got := text(nothing.ofHost()) + text(nothing.ofNIC("eth0", serverMAC)); got != "" {
		t.Errorf("a machine without any such file: %s", got)
	}
	// A veth is no device, and has no interrupts.
	if got := text(machine(server()).ofNIC("veth0", "")); got != "" {
		t.Errorf("of an interface that is software: %s", got)
	}
	files := server()
	files["dev/cpu_dma_latency"] = "x" // too short to be one
	if got := text(machine(files).ofHost()); !strings.Contains(got, "C-states") {
		t.Errorf("%s", got)
	}
}

// A limit that some program holds keeps idle cores from the states beyond it alone: what is left of
// them is told.
func TestTuning_HeldLatency(t *testing.T) {
	for held, want := range map[uint32]string{
		2: "", 59: "", 60: "up to 60 us to wake from C3", 133: "up to 133 us to wake from C6", 132: "up to 60 us to wake from C3",
	} {
		files := server()
		files["sys/devices/system/cpu/cpu0/cpuidle/state3/name"] = "C3\n"
		files["sys/devices/system/cpu/cpu0/cpuidle/state3/latency"] = "60\n"
		limit := make([]byte, 4)
		binary.NativeEndian.PutUint32(limit, held)
		files["dev/cpu_dma_latency"] = string(limit)
		got := text(machine(files).ofHost())
		if strings.Contains(got, "C-states") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%d us are held: %s; want %q", held, got, want)
		}
	}
}

// In a network namespace that has not mounted its own /sys the files are those of an interface of
// the same name elsewhere: its interrupts are not this one's.
func TestTuning_OfAnotherNamespace(t *testing.T) {
	if got := text(machine(server()).ofNIC("eth0", "02:00:00:00:00:01")); got != "" {
		t.Errorf("of the namespace's eth0: %s", got)
	}
}

// Interrupts are found by their names where the device does not list them, and not those of other
// NICs.
func TestTuning_InterruptsByName(t *testing.T) {
	m := machine(map[string]string{
		"sys/class/net/eth0/device/vendor": "0x8086\n",
		"proc/interrupts": "           CPU0       CPU1\n  24:   9   0   PCI-MSI 1-edge   eth0-TxRx-0\n  25:   9   0  PCI-MSI 2-edge  eth0\n" +
			"  26:   9   0   PCI-MSI 1-edge   eth01-TxRx-0\n  27:  1 0 PCI-MSI 3-edge eth0:x\n NMI:   0   0   Non-maskable interrupts eth0\n",
	})
	got := m.irqs("eth0")
	if len(got) != 3 || got[0] != 24 || got[1] != 25 || got[2] != 27 {
		t.Errorf("%v, want 24, 25, 27", got)
	}
	files := m.files.(fstest.MapFS)
	delete(files, "sys/class/net/eth0/device/vendor")
	if got := m.irqs("eth0"); len(got) != 0 {
		t.Errorf("of a container's veth, whose name is that of the host's NIC: %v", got)
	}
	m = tuning{fstest.MapFS{
		"proc/interrupts":           {Data: []byte(" 30:  0 0 PCI-MSIX 0-edge virtio1-config\n 31:  0 7 PCI-MSIX 1-edge virtio1-input.0\n 32: 1 1 PCI-MSIX 1-edge virtio10-req.0\n")},
		"sys/class/net/eth0/device": {Mode: fs.ModeSymlink, Data: []byte("../../../virtio1")},
	}}
	if got := m.irqs("eth0"); len(got) != 1 || got[0] != 31 {
		t.Errorf("of virtio: %v, want 31", got)
	}
}

// denied is a tree where a file may not be read.
type denied struct {
	fs.FS
	name string
}

func (d denied) Open(name string) (fs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

// Each interrupt stays on a core of its own, and the program has another one.
func TestTuning_Placement(t *testing.T) {
	files := map[string]string{"sys/class/net/eth0/address": serverMAC, "sys/devices/system/cpu/online": "0-7\n",
		"proc/interrupts": "  CPU0 CPU1\n"}
	for irq, mask := range map[string]string{"45": "0-1", "46": "2-3", "47": "4-5", "48": "6-7", "49": "0-7"} {
		files["sys/class/net/eth0/device/msi_irqs/"+irq] = ""
		files["proc/irq/"+irq+"/smp_affinity_list"] = mask + "\n"
		files["proc/interrupts"] += " " + irq + ":  9  0  PCI-MSIX-0000:01:00.0  0-edge"
		if irq != "49" { // nothing handles it
			files["proc/interrupts"] += "  eth0-" + irq
		}
		files["proc/interrupts"] += "\n"
	}
	get := func() string { return text(machine(files).interrupts("eth0")) }
	echo := func(core, irq int) string {
		return fmt.Sprintf("echo %d | sudo tee /proc/irq/%d/smp_affinity_list;", core, irq)
	}
	want := strings.Join([]string{echo(0, 45), echo(2, 46), echo(4, 47), echo(6, 48), "then: taskset -c 1 ./program"}, " ")
	if got := get(); !strings.Contains(got, want) || strings.Contains(got, "/49/") {
		t.Errorf("got %s; want %s", got, want)
	}
	for _, irq := range []string{"46", "47", "48"} {
		files["proc/irq/"+irq+"/smp_affinity_list"] = "0-127\n" // of more cores than there are
	}
	files["proc/irq/45/effective_affinity_list"] = "1\n"
	want = strings.Join([]string{echo(0, 46), echo(2, 47), echo(3, 48), "then: taskset -c 4 ./program"}, " ")
	if got := get(); !strings.Contains(got, want) || strings.Contains(got, "IRQ 45") {
		t.Errorf("one stays on core 1: got %s; want %s", got, want)
	}
	for irq, core := range map[string]string{"46": "0", "47": "5", "48": "7"} {
		files["proc/irq/"+irq+"/effective_affinity_list"] = core + "\n"
	}
	if got := get(); got != "" {
		t.Errorf("all stay where they are: %s", got)
	}
	files["sys/class/net/eth0/device/numa_node"], files["sys/devices/system/node/node1/cpulist"] = "1\n", "4-7\n"
	want = strings.Join([]string{echo(4, 45), strings.TrimSuffix(echo(6, 46), ";")}, " ")
	if got := get(); !strings.HasSuffix(got, want+"\n") {
		t.Errorf("two are far from the NIC: got %s; want %s", got, want)
	}
}

// Of what a program may hold nothing is concluded where that may not be read.
func TestTuning_LatencyMayNotBeRead(t *testing.T) {
	const name, want = "dev/cpu_dma_latency", "unless some program holds /dev/cpu_dma_latency, which cannot be told: "
	m := tuning{denied{machine(server()).files, name}}
	if got := text(m.ofHost()); !strings.Contains(got, want) || !strings.Contains(got, "permission denied") {
		t.Errorf("%s", got)
	}
	if got := text(machine(server()).ofHost()); strings.Contains(got, "unless") {
		t.Errorf("there is no such file: %s", got)
	}
}

// What may not be read is said, and is no reason to stop.
func TestTuning_CannotTell(t *testing.T) {
	m := tuning{denied{machine(server()).files, "proc/irq/45/smp_affinity_list"}}
	got := text(m.ofNIC("eth0", serverMAC))
	if !strings.Contains(got, "IRQ placement | cannot tell where the interrupts of eth0 are handled: ") ||
		!strings.Contains(got, "permission denied") || !strings.Contains(got, "busy polling") {
		t.Errorf("%s", got)
	}
}

func TestCores(t *testing.T) {
	for list, want := range map[string]string{
		"0-3,8": "0-3,8", "5": "5", "0,1,2": "0-2", "1,3": "1,3", "": "", "x": "", "1-x": "", "0-99999999": "",
	} {
		if got := formatCores(parseCores(list)); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
