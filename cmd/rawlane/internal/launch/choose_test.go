package launch

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/transport"
)

// A host file names the interface of each network, and the address that is on it.
func TestChooseNode_InterfacesOfTheHostfile(t *testing.T) {
	const file = "0 02:00:00:00:00:01 eth0\n0 02:00:00:00:01:01 eth1\n" +
		"1 02:00:00:00:00:02 eth0\n1 02:00:00:00:01:02\n"
	parsed, err := cluster.ParseHostfile("hosts", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node, nics int
		want       string // interfaces, or a part of an error
	}{
		{0, 1, "eth0"},
		{0, 2, "eth0,eth1"},
		{0, 3, "--nics 3: hosts lists 2 NICs of each node"},
		{1, 1, "eth0"},
		{1, 2, "hosts:4: node 1 has no interface"},
	} {
		f := &ClusterFlags{Kind: "ring", Hostfile: "hosts", Node: c.node, Nodes: 2, NICs: c.nics}
		err := f.chooseNode(parsed.Hosts)
		if err == nil && f.ifname != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("node %d, %d NICs: %q, %v; want %s", c.node, c.nics, f.ifname, err, c.want)
		}
	}
	f := &ClusterFlags{Kind: "ring", Node: 0, Nodes: 2, NICs: 2}
	if err := f.chooseNode(nil); err == nil || !strings.Contains(err.Error(), "--nics 2: on which network interfaces?") {
		t.Errorf("two NICs, and no host file: %q, %v", f.ifname, err)
	}
	mac := func(nic, node byte) transport.MAC { return transport.MAC{2, 0, 0, 0, nic, node} }
	for _, c := range []struct {
		nics int
		macs []transport.MAC
		ok   bool
	}{
		{1, []transport.MAC{mac(0, 1)}, true},
		{1, []transport.MAC{mac(0, 2)}, false},
		{2, []transport.MAC{mac(0, 1), mac(1, 1)}, true},
		{2, []transport.MAC{mac(0, 1), mac(1, 2)}, false},
	} {
		f := &ClusterFlags{Hostfile: "hosts", NICs: c.nics}
		if err := f.checkMACs(parsed.Hosts, 0, c.macs, "that"); (err == nil) != c.ok {
			t.Errorf("%d NICs, %v: %v", c.nics, c.macs, err)
		}
	}
	named := []cluster.Host{{NICs: []cluster.HostNIC{{Line: 1}}}, {NICs: []cluster.HostNIC{{MAC: mac(0, 2), Line: 2}}}}
	f = &ClusterFlags{Hostfile: "hosts", NICs: 1}
	for own, want := range map[byte]string{1: "", 2: "hosts:2: MAC 02:00:00:00:00:02 is node 1's, and that"} {
		if err := f.checkMACs(named, 0, []transport.MAC{mac(0, own)}, "that"); fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("%v of node 0, which has a name: %v, want %q", mac(0, own), err, want)
		}
	}
}
