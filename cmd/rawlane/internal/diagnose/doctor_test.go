package diagnose

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

func TestDoctor(t *testing.T) {
	out, errs, status := command(t, "doctor", "--json", "--interface", "lo")
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); status != cli.ExitDone || errs != "" || err != nil {
		t.Fatalf("status %d: %s %v", status, errs, err)
	}
	if len(d.Checks) != 5 || !d.Checks[0].OK || len(d.Interfaces) != 1 || d.Interfaces[0].Name != "lo" {
		t.Errorf("%s", out)
	}
	for _, f := range append(d.Checks, d.Interfaces[0].Links...) {
		if !f.OK && f.Reason == "" {
			t.Errorf("%s: no reason", f.Name)
		}
	}
	if out, _, _ := command(t, "doctor", "--interface", "lo"); !strings.Contains(out, "yes  fabric links (in memory)") || !strings.Contains(out, "not an Ethernet interface") {
		t.Errorf("%s", out)
	}
}

// The loopback's MTU is longer than IP packets are: that is no fault of the path.
func TestDoctor_PathOfTheLoopback(t *testing.T) {
	switch f := examinePath(t.Context(), "127.0.0.1"); {
	case strings.Contains(f.Reason, transport.ErrNotSupported.Error()):
		t.Skip(f.Reason)
	case !f.OK || f.Cure != "":
		t.Errorf("%+v", f)
	}
}

// The doctor exits with 1 if something does not work that was named, and else with 0.
func TestDoctor_Verdict(t *testing.T) {
	good, bad := finding{Name: "a", OK: true}, finding{Name: "b"}
	for _, c := range []struct {
		d    diagnosis
		only string
		want string // "": it exits with 0
	}{
		{diagnosis{Checks: []finding{bad}, Interfaces: []nicFinding{{Links: []finding{bad}}}}, "", ""},
		{diagnosis{Interfaces: []nicFinding{{Links: []finding{bad, good}, Advice: []finding{bad}}}, Paths: []finding{good}}, "eth0", ""},
		{diagnosis{Interfaces: []nicFinding{{Links: []finding{bad, bad}}}}, "eth0", "not as it should be: any link on eth0 ("},
		{diagnosis{Paths: []finding{good, bad}}, "", "not as it should be: b ("},
	} {
		err := c.d.verdict(c.only)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.d, err, c.want)
		}
	}
}

// The keys of docs/bench-json.md are those that are printed.
func TestDoctorJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(doc), "## The doctor")
	for _, printed := range []any{diagnosis{}, finding{}, nicFinding{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(printed)) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key != "" && !strings.Contains(part, "`"+key+"`") {
				t.Errorf("%T: %s is not in docs/bench-json.md", printed, key)
			}
		}
	}
	if d, err := diagnose("lo"); err != nil || d.Schema != doctorSchema {
		t.Errorf("%+v, %v", d, err)
	}
}

// The MTU of an interface is found by each address of its own, in all the ways in which a station's
// address is written: those of IPv6 perhaps in brackets, and with their interface where they are
// link-local.
func TestDoctor_OwnMTU(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				t.Fatal(err)
			}
			ip := p.Addr()
			if ip.IsLinkLocalUnicast() && ip.Is6() {
				ip = ip.WithZone(i.Name)
			}
			for _, addr := range []string{ip.String(), "[" + ip.String() + "]", netip.AddrPortFrom(ip, 7401).String()} {
				if mtu, own := ownMTU(addr); mtu != min(i.MTU, longestPacket) || own != ip {
					t.Errorf("%s: %d of %v, want %d of %v", addr, mtu, own, i.MTU, ip)
				}
			}
		}
	}
}

// Beside a node whose udp link is open there can be udp links.
func TestDoctor_BesideALink(t *testing.T) {
	held, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	f := tryLink("udp", "lo", func() (transport.Link, error) { return udp.Open(held.LocalAddr().String(), udp.Config{}) })
	if !f.OK || !strings.Contains(f.Reason, "its port is in use") {
		t.Errorf("%+v", f)
	}
}

// For a link that an interface does not take as it is, there is the command that mends it.
func TestDoctor_LinkCure(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{transport.ErrInterfaceDown, "sudo ip link set eth7 up"},
		{transport.ErrNoInterface, "sudo ip addr add ADDRESS/LENGTH dev eth7"},
		{transport.ErrNotSupported, ""},
	} {
		f := tryLink("udp", "eth7", func() (transport.Link, error) { return nil, c.err })
		if f.OK || f.Reason == "" || (f.Cure == "") != (c.want == "") || !strings.Contains(f.Cure, c.want) {
			t.Errorf("%v: %+v, want the cure %q", c.err, f, c.want)
		}
	}
}

// Who cuts trains, and who joins them.
func TestDoctor_Trains(t *testing.T) {
	for _, c := range []struct {
		facts launch.NICFacts
		want  []string
	}{
		{launch.NICFacts{}, []string{"the kernel cuts", "tx-udp-segmentation off", "stay cut", "forwarding off"}},
		{launch.NICFacts{Segments: true}, []string{"the NIC cuts", "tx-udp-segmentation on", "stay cut", "forwarding off"}},
		{launch.NICFacts{Joins: true}, []string{"the kernel cuts", "tx-udp-segmentation off", "are joined", "forwarding on"}},
	} {
		var out strings.Builder
		(&nicFinding{Name: "eth7", NICFacts: c.facts}).print(&out)
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%+v: %q is not in %s", c.facts, w, out.String())
			}
		}
	}
}

// What a NIC's settings cost, and the command that mends it.
func TestDoctor_Advice(t *testing.T) {
	const up = net.FlagUp | net.FlagRunning
	for _, c := range []struct {
		name  string
		facts launch.NICFacts
		flags net.Flags
		want  string // in the one advice; "": none
		not   string // nor this
	}{
		{"nothing to mend", launch.NICFacts{Driver: "veth"}, up, "", ""},
		{"no carrier", launch.NICFacts{}, net.FlagUp, "plug the cable in", ""},
		{"down: that is said by the links", launch.NICFacts{}, 0, "", ""},
		{"held interrupts", launch.NICFacts{RxCoalesceUsec: 3}, up, "sudo ethtool -C eth7 rx-usecs 0", "by the load"},
		{"adaptive", launch.NICFacts{AdaptiveRx: true}, up, "sudo ethtool -C eth7 adaptive-rx off rx-usecs 0", ""},
		{"igb chooses", launch.NICFacts{Driver: "igb", RxCoalesceUsec: 3}, up, "sudo ethtool -C eth7 rx-usecs 0", "up to 3 us"},
		{"igb is told", launch.NICFacts{Driver: "igb", RxCoalesceUsec: 50}, up, "sudo ethtool -C eth7 rx-usecs 0", "by the load"},
		{"e1000e chooses", launch.NICFacts{Driver: "e1000e", RxCoalesceUsec: 1}, up, "sudo ethtool -C eth7 rx-usecs 0", "up to 1 us"},
		{"ixgbe chooses", launch.NICFacts{Driver: "ixgbe", RxCoalesceUsec: 1}, up, "sudo ethtool -C eth7 rx-usecs 0", "up to 1 us"},
		{"ixgbe is told", launch.NICFacts{Driver: "ixgbe", RxCoalesceUsec: 3}, up, "sudo ethtool -C eth7 rx-usecs 0", "by the load"},
		{"VLAN filter", launch.NICFacts{VLANFilter: true}, up, "sudo ethtool -K eth7 rx-vlan-filter off", ""},
		{"e1000 strips tags", launch.NICFacts{Driver: "e1000", VLANStrip: true}, up, "sudo ethtool -K eth7 rx-vlan-offload off", ""},
		{"e1000 leaves tags", launch.NICFacts{Driver: "e1000"}, up, "", ""},
		{"e1000e hands on all of a tag", launch.NICFacts{Driver: "e1000e", VLANStrip: true}, up, "", ""},
	} {
		n := nicFinding{Name: "eth7", NICFacts: c.facts}
		n.adviseAll(c.flags)
		n.Advice = append(n.Advice, n.coalescing()...)
		if c.want == "" && len(n.Advice) > 0 {
			t.Errorf("%s: advice %+v, want none", c.name, n.Advice)
		}
		if c.want != "" && (len(n.Advice) != 1 || n.Advice[0].Reason == "" || !strings.Contains(n.Advice[0].Cure, c.want)) {
			t.Errorf("%s: advice %+v, want %q alone", c.name, n.Advice, c.want)
		}
		if c.not != "" && strings.Contains(text(n.Advice), c.not) {
			t.Errorf("%s: advice %+v, want nothing of %q", c.name, n.Advice, c.not)
		}
	}
}

// Two processes that spin need two cores: two threads of one will not do. Where the system does not
// tell, nothing is wrong.
func TestDoctor_Cores(t *testing.T) {
	for _, c := range []struct {
		processors, cores int
		cpuMax            string
		reason            string
	}{
		{1, 1, "", "one core: "},
		{2, 1, "", "the 2 processors are threads of one core"},
		{2, 2, "", ""},
		{4, 2, "", ""},
		{2, 0, "", ""},
		{8, 4, "100000 100000", "a quota of 1.0 processors"},
		{8, 1, "150000 100000", "a quota of 1.5 processors"},
		{8, 4, "200000 100000", ""},
		{8, 4, "max 100000", ""},
	} {
		quota := machine(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": c.cpuMax}).quota()
		f := judgeCores(c.processors, c.cores, quota, nil)
		if f.OK != (c.reason == "") || !strings.HasPrefix(f.Reason, c.reason) || f.OK == (f.Cure != "") {
			t.Errorf("%d processors of %d cores: %+v, want %q", c.processors, c.cores, f, c.reason)
		}
	}
}

// The cure of one core names cores that there are, and that this process may have.
func TestDoctor_CoresToHave(t *testing.T) {
	const online, own = "sys/devices/system/cpu/online", "sys/fs/cgroup/a/cpuset.cpus.effective"
	const or = " $$ (or give the container or virtual machine two)"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{online: "0-7\n"}, "taskset -p -c 0-1" + or},
		{map[string]string{online: "0,4-7\n"}, "taskset -p -c 0,4" + or},
		{map[string]string{online: "0-7\n", "proc/self/cgroup": "0::/a\n", own: "5-6\n"}, "taskset -p -c 5-6" + or},
		{map[string]string{online: "0-7\n", "proc/self/cgroup": "0::/a\n", own: "5\n"}, "give the container or virtual machine two"},
		{map[string]string{online: "0-7\n", "proc/self/cgroup": "0::/b\n"}, "taskset -p -c 0-1" + or},
		{nil, "give the container or virtual machine two"},
	} {
		if f := judgeCores(1, 1, 0, machine(c.files).usable()); f.Cure != c.want {
			t.Errorf("%v: %q, want %q", c.files, f.Cure, c.want)
		}
	}
}

// A command to paste has the program as one word.
func TestDoctor_SetcapCure(t *testing.T) {
	const want = "setcap cap_net_raw+ep '/my tools/rawlane', or have"
	if got := setcapCure("/my tools/rawlane"); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The quota is the least of those of this process's group and the groups above it, wherever the
// system tells it; 0 without one.
func TestTuning_Quota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no groups": {nil, 0},
		"none":      {map[string]string{"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 0},
		"its own":   {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n"}, 0.5},
		"of a slice": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "300000 200000\n",
			"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n"}, 1.5},
		"in a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1},
		"of the old groups": {map[string]string{"proc/self/cgroup": "3:cpu,cpuacct:/docker/x\n2:pids:/\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us": "250000\n", "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n"}, 2.5},
		"of them, in a container": {map[string]string{"proc/self/cgroup": "3:cpu:/docker/x\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1},
		"of them, none": {map[string]string{"proc/self/cgroup": "3:cpu:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		"not to be read": {map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/cpu.max": "many\n"}, 0},
		"of no time":     {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 0\n"}, 0},
	} {
		if got := machine(c.files).quota(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
