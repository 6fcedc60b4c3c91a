package testbed

import (
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
)

// A list of hosts is read as mpirun's are; what is not one is refused, with its line.
func TestParseHosts(t *testing.T) {
	for text, want := range map[string][]slots{
		"a\n":                        {{"a", 1}},
		"a:2\nb slots=3\n":           {{"a", 2}, {"b", 3}},
		"# none\n\n  a  # one\nb:1":  {{"a", 1}, {"b", 1}},
		"a\nb\na:2\n":                {{"a", 3}, {"b", 1}},
		"user@a:4\n":                 {{"user@a", 4}},
		"\ufeffa\n":                  {{"a", 1}},
		"a:65535":                    {{"a", 65535}},
		"[fd00::1]:2\n[fd00::2]\n":   {{"fd00::1", 2}, {"fd00::2", 1}},
		"me@[fd00::1] slots=2\n":     {{"me@fd00::1", 2}},
		"fd00::1\nfd00::2 slots=2\n": {{"fd00::1", 1}, {"fd00::2", 2}},
	} {
		if got, err := parseHosts("f", strings.NewReader(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                 "f: no hosts",
		"# none\n":                         "f: no hosts",
		"a\nb:0\n":                         `f:2: "b:0" (want`,
		"a:x":                              `f:1: "a:x" (want`,
		"a slots=-1":                       `f:1: "a slots=-1" (want`,
		"a b":                              `f:1: "a b" (want`,
		"a slots=1 b":                      `f:1: "a slots=1 b" (want`,
		"a:1 slots=2":                      `f:1: "a:1 slots=2" (want`,
		"a:":                               `f:1: "a:" (want`, // as "a:$SLOTS" is, where that is not set
		"a slots=":                         `f:1: "a slots=" (want`,
		"a\n" + strings.Repeat("x", 1<<17): "f:2: longer than 65536 bytes (want NAME,",
		"a:65536":                          `f:1: 65536 slots (want 1 to 65535)`,
		"[fd00::1]:":                       `f:1: "[fd00::1]:" (want`,
		":2":                               `f:1: ":2" (want`,
		"-oProxyCommand=reboot":            `f:1: "-oProxyCommand=reboot" (want`,
	} {
		if got, err := parseHosts("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// Programs fill the slots of one host after another.
func TestSpread(t *testing.T) {
	all := []slots{{"a", 2}, {"b", 3}}
	for n, want := range map[int]string{0: "", 1: "a", 2: "a a", 3: "a a b", 5: "a a b b b", 9: "a a b b b"} {
		if got := strings.Join(spread(all, n), " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// A name that is this host's loopback is no address for others to meet its programs at, and one of
// another family is none either.
func TestFindAddrs_Unreachable(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.1.1 192.0.2.1": "host 127.0.1.1: its address is 127.0.1.1 here, by which 192.0.2.1 does not reach it",
		"fd00::2 ::1":         "host ::1: its address is ::1 here, by which fd00::2 does not reach it",
		"192.0.2.1 fd00::2":   "host fd00::2 has no IPv4 address, and 192.0.2.1 no IPv6 address",
		"127.0.0.1 127.0.0.2": "",
		"192.0.2.1 192.0.2.2": "",
	} {
		hosts := strings.Fields(text)
		r := remote{
			shell: []string{"remote"}, hosts: hosts, share: map[string]int{hosts[0]: 1, hosts[1]: 1}, slot: []int{0, 0},
			verb: &runVerb{link: "udp", hosts: "list"},
		}
		if err := r.findAddrs(t.Context()); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Hosts meet by addresses of one family, also where some have one alone.
func TestOneFamily(t *testing.T) {
	four, six := net.IPAddr{IP: net.ParseIP("192.0.2.1")}, net.IPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}
	for want, all := range map[string]map[string][]net.IPAddr{
		"192.0.2.1 192.0.2.1":       {"a": {six, four}, "b": {four}},
		"fe80::1%eth0 fe80::1%eth0": {"a": {four, six}, "b": {six}},
	} {
		got, err := oneFamily([]string{"a", "b", "a"}, all)
		if err != nil {
			t.Error(err)
			continue
		}
		a, b := got["a"], got["b"]
		if text := a.String() + " " + b.String(); text != want {
			t.Errorf("%v: %s, want %s", all, text, want)
		}
	}
}

// Each program listens at an address of its own, also where a host has two names in the list.
func TestFindAddrs_TwoNames(t *testing.T) {
	r := remote{
		shell: []string{"remote"}, hosts: []string{"192.0.2.1", "192.0.2.1", "me@192.0.2.1", "192.0.2.2"},
		share: map[string]int{"192.0.2.1": 2, "me@192.0.2.1": 1, "192.0.2.2": 1}, slot: []int{0, 1, 0, 0},
		verb: &runVerb{},
	}
	want := []string{"192.0.2.1:27401", "192.0.2.1:27402", "192.0.2.1:27403", "192.0.2.2:27401"}
	if err := r.findAddrs(t.Context()); err != nil || !slices.Equal(r.addrs, want) {
		t.Errorf("%v, %v; want %v", r.addrs, err, want)
	}
}

// A machine of two names has the programs of both; who does not say which one it is has its own.
func TestCount(t *testing.T) {
	r := remote{
		hosts: []string{"a", "a", "b", "me@a", "c"},
		is:    map[string]string{"a": machine("Hi\nrawlane-machine x net 0\n/tmp/f\n"), "me@a": "x net 0", "b": machine("/tmp/f\n")},
	}
	r.count()
	if !slices.Equal(r.machine, []string{"a", "a", "b", "a", "c"}) || !slices.Equal(r.slot, []int{0, 1, 0, 2, 0}) ||
		!maps.Equal(r.share, map[string]int{"a": 3, "b": 1, "c": 1}) {
		t.Errorf("machines %v, slots %v, shares %v", r.machine, r.slot, r.share)
	}
}

// What all programs are told fits into one argument, or is refused.
func TestFindAddrs_TooMany(t *testing.T) {
	for n, want := range map[int]string{
		7000: "", 8000: "8000 programs meet by UDP: the addresses of 7680 fit into an argument"} {
		hosts := slices.Concat(slices.Repeat([]string{"192.0.2.1"}, n/2), slices.Repeat([]string{"192.0.2.2"}, n/2))
		r := remote{
			shell: []string{"remote"}, hosts: hosts, share: map[string]int{"192.0.2.1": n / 2, "192.0.2.2": n / 2},
			verb: &runVerb{},
		}
		if err := r.findAddrs(t.Context()); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d programs: %v, want %s", n, err, want)
		}
	}
}

// A folder is the one that unpack says it has made: what else a shell prints is no folder to remove.
func TestMadeFolder(t *testing.T) {
	for _, c := range []struct{ out, want string }{
		{"Welcome\nrawlane-folder /tmp/rawlane-Ab3dEf9h\n", "/tmp/rawlane-Ab3dEf9h"},
		{"rawlane-folder /tmp/rawlane-Ab3dEf9h\nran in\n/home/me\n", "/tmp/rawlane-Ab3dEf9h"},
		{"/tmp/rawlane-Ab3dEf9h\n", ""},
		{"rawlane-folder /\n", ""},
		{"rawlane-folder /home/me\n", ""},
		{"rawlane-folder /tmp/rawlane-Ab3dEf9h: no space\n", ""},
		{"Welcome\n/\n", ""},
		{"", ""},
	} {
		if got := madeFolder(c.out); got != c.want {
			t.Errorf("%q: %q, want %q", c.out, got, c.want)
		}
	}
}

// No more shells are open at a time than this machine has room for.
func TestOnEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]int{}
		for k := range 3*maxShells + 1 {
			hosts[strconv.Itoa(k)] = k
		}
		var open, most, all atomic.Int32
		onEach(hosts, func(string) {
			all.Add(1)
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			open.Add(-1)
		})
		if most.Load() != maxShells || int(all.Load()) != len(hosts) {
			t.Errorf("%d of %d hosts, %d at a time", all.Load(), len(hosts), most.Load())
		}
	})
}

// A program on another host has the key that was copied there; without one its environment says
// nothing of keys, so that a host whose own environment names one is not left without.
func TestRemoteEnv_KeyFile(t *testing.T) {
	for keyFile, want := range map[string]string{"": "", "/here/key": start.EnvKeyFile + "=/there/key"} {
		r := remote{
			hosts: []string{"a"}, machine: []string{"a"}, share: map[string]int{"a": 1}, folders: map[string]string{"a": "/there"},
			verb: &runVerb{keyFile: keyFile},
		}
		env := r.env(0)
		says := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, start.EnvKeyFile) })
		if says != (want != "") || says && !slices.Contains(env, want) {
			t.Errorf("key file %q: %q, want %q", keyFile, env, want)
		}
	}
}

// A program on another host is asked to end by a byte that its remote shell passes on; one that has the standard
// input is not.
func TestRemoteCommand_Cancel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	for _, stdin := range []bool{false, true} {
		r := remote{
			shell: []string{"sh", "-c", `echo "$1"; head -c 1 | wc -c`}, hosts: []string{"a"}, machine: []string{"a"},
			share: map[string]int{"a": 1}, slot: []int{0}, folders: map[string]string{"a": "/there"}, program: "p",
			verb: &runVerb{stdin: stdin},
		}
		c, err := r.command(0, []string{"p"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if stdin {
			if c.Cancel != nil || !strings.Contains(strings.Join(c.Args, " "), "'--stdin'") {
				t.Errorf("%q can be asked, or does not get the input", c.Args)
			}
			continue
		}
		var out strings.Builder
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Cancel(), c.Wait()); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Fields(out.String()); lines[len(lines)-1] != "1" || strings.Contains(out.String(), "--stdin") {
			t.Errorf("%q, want the agent without --stdin, and the byte", out.String())
		}
	}
}
