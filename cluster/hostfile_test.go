package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// parse reads the nodes of a host file.
func parse(text string) ([]Host, error) {
	f, err := ParseHostfile("hosts", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return f.Hosts, nil
}

func TestHostfile(t *testing.T) {
	hosts, err := parse(`
# number, address, interface
1 node1 eth0          # MAC unknown
0 02:00:00:00:00:01 eth0
0 02:00:00:00:01:01
1 node1 eth1
`)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{0 [{02:00:00:00:00:01   eth0 4} {02:00:00:00:01:01    5}]} {1 [{00:00:00:00:00:00 node1  eth0 3} {00:00:00:00:00:00 node1  eth1 6}]}]"
	if got := fmt.Sprint(hosts); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, complete := Nodes(hosts); complete {
		t.Error("node 1's address is not known")
	}
	if table, complete := Nodes(hosts[:1]); !complete || fmt.Sprint(table) != "[{0 [02:00:00:00:00:01 02:00:00:00:01:01]}]" {
		t.Errorf("table %v, complete %v", table, complete)
	}
}

func TestHostfileFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "\n# nothing\n", "hosts: no node in it (want a line for each"},
		{"nothing", "", "hosts: no node in it"},
		{"one field", "0\n", "hosts:1: 1 fields (want 2 or 3"},
		{"four fields", "0 node0 eth0 eth1\n", "hosts:1: 4 fields"},
		{"no number", "zero node0\n", `hosts:1: node number "zero" (want 0 to 65534)`},
		{"number out of range", "65535 node0\n", `hosts:1: node number "65535"`},
		{"neither MAC nor name", "0 02:00:00:00:00\n", `hosts:1: "02:00:00:00:00" is neither a MAC`},
		{"group address", "0 01:00:5e:00:00:01\n", "hosts:1: 01:00:5e:00:00:01 is no station's address"},
		{"one MAC twice", "0 02:00:00:00:00:01\n1 02:00:00:00:00:01\n", "hosts:2: MAC 02:00:00:00:00:01 is on line 1 too"},
		{"neither address nor name", "0 10.0.0.1:0\n", `hosts:1: "10.0.0.1:0" is neither a MAC`},
		{"port out of range", "0 node0:65536\n", `hosts:1: "node0:65536" is neither a MAC`},
		{"an address with a slip", "0 10.0.0.1\n1 10.0.0.300\n", `hosts:2: "10.0.0.300" is neither a MAC`},
		{"an address with a slip, and its port", "0 10.0.0.300:7401\n", `hosts:1: "10.0.0.300:7401" is neither a MAC`},
		{"an address with a part too many", "0 10.0.0.1.2. eth0\n", `hosts:1: "10.0.0.1.2." is neither a MAC`},
		{"a number alone", "0 12 eth0\n", `hosts:1: "12" is neither a MAC (want 02:00:00:00:00:01) nor a host name`},
		{"a line too long", "0 a\n" + strings.Repeat("x", 1<<17), "hosts:2: longer than 65536 bytes (want number, MAC"},
		{"half a bracket", "0 [10.0.0.1\n", `hosts:1: "[10.0.0.1" is neither a MAC`},
		{"one address with its port and without", "0 10.0.0.1\n1 10.0.0.1:27401\n", "hosts:2: address 10.0.0.1:27401 is on line 1 too"},
		{"one address in two ways", "0 fd00::1\n1 [FD00:0::1]\n", "hosts:2: address [FD00:0::1] is on line 1 too"},
		{"one address twice", "0 10.0.0.1:1\n1 10.0.0.1:1\n", "hosts:2: address 10.0.0.1:1 is on line 1 too"},
		{"MAC and address", "0 02:00:00:00:00:01\n0 10.0.0.1:1\n", "hosts:2: node 0 is 10.0.0.1:1 here and 02:00:00:00:00:01 on line 1"},
		{"one number for two hosts", "0 a eth0\n0 b eth0\n", "hosts:2: node 0 is b here and a on line 1"},
		{"one NIC twice", "0 a eth0\n0 a eth0\n", `hosts:2: node 0 has interface "eth0" on line 1 too`},
		{"a gap", "0 a\n2 c\n", "hosts:2: node 2, but no node 1"},
		{"unlike numbers of NICs", "0 a eth0\n0 a eth1\n1 b eth0\n", "hosts:3: node 1 has 1 NICs, node 0 has 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.text)
			var s *SyntaxError
			if !errors.Is(err, ErrHostfile) || !errors.As(err, &s) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestSelf(t *testing.T) {
	hosts, err := parse("0 02:00:00:00:00:01\n1 node1 eth0\n2 02:00:00:00:00:03\n")
	if err != nil {
		t.Fatal(err)
	}
	nic := func(mac string) []net.Interface {
		hw, _ := net.ParseMAC(mac)
		return []net.Interface{{Name: "lo"}, {Name: "eth0", HardwareAddr: hw}}
	}
	for _, c := range []struct {
		name, mac, host string
		want            mcd.NodeID
		ok              bool
	}{
		{"by MAC", "02:00:00:00:00:03", "elsewhere", 2, true},
		{"by name", "02:00:00:00:00:99", "node1", 1, true},
		{"by name with a domain", "02:00:00:00:00:99", "node1.cluster.local", 1, true},
		{"by name in another case", "02:00:00:00:00:99", "NODE1", 1, true},
		{"not by a name that begins alike", "02:00:00:00:00:99", "node10", 0, false},
		{"none", "02:00:00:00:00:99", "elsewhere", 0, false},
		{"two", "02:00:00:00:00:01", "node1", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := self(hosts, nic(c.mac), nil, c.host)
			if (err == nil) != c.ok || c.ok && h.Node != c.want {
				t.Errorf("%v, %v", h, err)
			}
		})
	}
}

// Where links are UDP's, nodes have addresses: of IP, with a port or without, or a host's name with
// a port.
func TestHostfile_Addresses(t *testing.T) {
	hosts, err := parse(
		"0 10.0.0.1\n1 10.0.0.1:7402 eth0\n2 node2:7401\n3 [fd00::1]:7401\n4 fd00::2\n5 node5\n")
	if err != nil {
		t.Fatal(err)
	}
	stations, err := Stations(hosts, 0)
	const want = "[{10.0.0.1 zero} {10.0.0.1:7402 zero} {node2:7401 zero} {[fd00::1]:7401 zero} {fd00::2 zero} {node5 zero}]"
	if got := strings.ReplaceAll(fmt.Sprint(stations), "00:00:00:00:00:00", "zero"); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := Stations(hosts, 1); err == nil || !strings.Contains(err.Error(), "no number 1") {
		t.Errorf("%v", err)
	}
	macs, _ := parse("0 10.0.0.1\n1 02:00:00:00:00:01\n")
	if _, err := Stations(macs, 0); err == nil || !strings.Contains(err.Error(), "node 1: a MAC alone") {
		t.Errorf("%v", err)
	}
	addrs := func(ip string) []net.Addr {
		return []net.Addr{&net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(24, 32)}}
	}
	for _, c := range []struct {
		ip, host string
		node     mcd.NodeID
		ok       bool
	}{
		{"fd00::1", "elsewhere", 3, true}, {"fd00::2", "elsewhere", 4, true}, {"10.0.0.9", "node2", 2, true},
		{"10.0.0.1", "elsewhere", 0, false}, {"10.0.0.9", "elsewhere", 0, false},
	} {
		if h, err := self(hosts, nil, addrs(c.ip), c.host); (err == nil) != c.ok || c.ok && h.Node != c.node {
			t.Errorf("%s, %s: %v, %v", c.ip, c.host, h, err)
		}
	}
}

// All faults are told at once, each with its line; one that other faults may have caused is not.
func TestHostfile_TellsAllFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"zero a\n0 02:00:00:00:00:01\n2 02:00:00:00:00:01\n0\n", `hosts:1: node number "zero" (want 0 to 65534)
hosts:3: MAC 02:00:00:00:00:01 is on line 2 too (want one line for each NIC)
hosts:4: 1 fields (want 2 or 3: number, MAC or host name, interface)`},
		{"1 a\n3 b\n", `hosts:1: node 1, but no node 0 (want 0 to n-1 without gaps)
hosts:2: node 3, but no node 2 (want 0 to n-1 without gaps)`},
	} {
		if _, err := parse(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
	_, err := parse(strings.Repeat("x\n", 10_000))
	if lines := strings.Count(err.Error(), "\n") + 1; lines != maxFaults {
		t.Errorf("%d faults of a file of another kind, want %d", lines, maxFaults)
	}
}

// What some editors write before the first line is no part of it.
func TestHostfile_ByteOrderMark(t *testing.T) {
	hosts, err := parse(byteOrderMark + "0 a\n1 b\n")
	if err != nil || len(hosts) != 2 {
		t.Errorf("%v, %v", hosts, err)
	}
}

// A host file may name hosts with or without their domains, in any case.
func TestSelf_NamesOfOneHost(t *testing.T) {
	for _, c := range []struct {
		file, host string
		want       bool
	}{
		{"node1", "node1.example.org", true}, {"node1.example.org", "node1", true}, {"Node1.Example.ORG", "node1.example.org", true},
		{"node1.example.org", "node1.example.com", false}, {"node1", "node2", false},
	} {
		if got := sameHost(c.file, c.host); got != c.want {
			t.Errorf("%s in the file, %s here: %v, want %v", c.file, c.host, got, c.want)
		}
	}
}

// A folder has no lines.
func TestReadHostfile_Folder(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadHostfile(dir); err == nil || err.Error() != dir+": is a folder (want a file with a line for each node)" {
		t.Errorf("%v", err)
	}
}

func FuzzHostfile(f *testing.F) {
	f.Add("0 02:00:00:00:00:01 eth0\n1 node1 # x\n")
	f.Add("zero a\n0 02:00:00:00:00:01\n2 02:00:00:00:00:01\n0\n")
	f.Add("1 a\n3 b\n3 b eth1\n")
	f.Add("0 10.0.0.1\n1 [fd00::1]:7401 eth0\n2 node2:7401\n2 10.0.0.1\n2 node2:7401\n")
	f.Add("0 a eth0\n0 a eth0\n1 01:00:5e:00:00:01\n2 -\n")
	f.Add("key-file key\n0 a\n1 b\n")
	f.Add("key-file /etc/key\n0 a\n1 b\nkey-file twice\n")
	f.Add("1 a\n3 b\n" + strings.Repeat("x", 1<<17))
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := parse(text)
		if err != nil {
			return
		}
		for i, h := range hosts {
			if int(h.Node) != i || len(h.NICs) != len(hosts[0].NICs) {
				t.Fatalf("%q: %v", text, hosts)
			}
		}
	})
}

// A host file may name the cluster's key file, once.
func TestHostfile_KeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hosts")
	for _, c := range []struct{ text, want, fault string }{
		{"0 a\n1 b\n", "", ""},
		{"key-file key\n0 a\n1 b\n", filepath.Join(dir, "key"), ""},
		{"0 a\n1 b\nkey-file /etc/key # here\n", "/etc/key", ""},
		{"0 a\nkey-file\n", "", "hosts:2: key-file: 0 names"},
		{"0 a\nkey-file x y\n", "", "hosts:2: key-file: 2 names"},
		{"key-file x\nkey-file y\n", "", "hosts:2: key-file is on line 1 too"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ReadHostfile(path)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %v; want %q", c.text, err, c.fault)
		}
		if err == nil && f.KeyFile != c.want {
			t.Errorf("%q: %q, want %q", c.text, f.KeyFile, c.want)
		}
	}
	if _, err := ReadHostfile(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
