package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

// built is a network of switches that were set up by a table of ports.
type built struct {
	t        *testing.T
	table    *topology.PortTable
	switches []*l2switch.Switch
}

func build(t *testing.T, table *topology.PortTable) *built {
	b := &built{t: t, table: table}
	for range table.Topology.Switches {
		b.switches = append(b.switches, l2switch.New(l2switch.Config{}))
	}
	for _, p := range table.Ports {
		c := l2switch.Trunk(p.Tagged...)
		if p.Untagged != 0 {
			c.PVID, c.VIDs, c.TaggedOnly = p.Untagged, append(c.VIDs, p.Untagged), false
			c.Untagged = []transport.VID{p.Untagged}
		}
		if n := vlantest.Must(b.switches[p.Switch].AddPort(c)); n != p.Number-1 {
			t.Fatalf("port %d of %s is number %d", n, table.Topology.Switches[p.Switch], p.Number)
		}
	}
	return b
}

func (b *built) port(sw, number int) topology.Port {
	i := slices.IndexFunc(b.table.Ports, func(p topology.Port) bool { return p.Switch == sw && p.Number == number })
	return b.table.Ports[i]
}

// flood returns how often each host gets a frame that comes in by a port, and as what.
func (b *built) flood(in topology.Port, tagged bool, tag transport.Tag) map[int][]l2switch.Egress {
	got := map[int][]l2switch.Egress{}
	type arrival struct {
		in     topology.Port
		tagged bool
		tag    transport.Tag
	}
	queue := []arrival{{in, tagged, tag}}
	for steps := 0; len(queue) > 0; steps++ {
		if steps > 10000 {
			b.t.Fatalf("a frame of %v goes round for ever", tag)
		}
		at := queue[0]
		queue = queue[1:]
		for _, e := range b.switches[at.in.Switch].Reach(at.in.Number-1, transport.OptionalTag{Tagged: at.tagged, Tag: at.tag}, nil) {
			out := b.port(at.in.Switch, e.Port+1)
			if out.Host >= 0 {
				got[out.Host] = append(got[out.Host], e)
			} else {
				queue = append(queue, arrival{b.port(out.Peer, out.PeerPort), e.Tagged, e.Tag})
			}
		}
	}
	return got
}

// Switches that are set up by the table flood a broadcast to all hosts, once each, in every VLAN.
func TestPortsMakeTheVLANs(t *testing.T) {
	nets := []*topology.Topology{vlantest.Must(topology.FatTree(3, 4, 2)), vlantest.Must(topology.Parse("vbft3:2x2x2x2x1")), vlantest.Must(topology.Flat(5))}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		net := vlantest.RandomNetwork(r, 2+r.IntN(8), r.IntN(10), 0)
		net.VLANs, _, _ = topology.ComputeVLANs(net, topology.VLANOptions{Paths: 2})
		nets = append(nets, net)
	}
	for i, net := range nets {
		for _, untagged := range []transport.VID{0, net.VLANs[0].VID} {
			b := build(t, vlantest.Must(net.Ports(topology.PortOptions{Untagged: untagged})))
			for _, in := range b.table.Ports {
				if in.Host < 0 {
					continue
				}
				for _, v := range net.VLANs {
					tagged := v.VID != untagged
					tag := transport.Tag{}
					if tagged {
						tag.VID = v.VID
					}
					got := b.flood(in, tagged, tag)
					for host := range net.Hosts {
						switch {
						case host == in.Host && len(got[host]) != 0:
							t.Errorf("network %d, VID %d: host %d gets its own frame back", i, v.VID, host)
						case host != in.Host && (len(got[host]) != 1 || got[host][0].Tagged != tagged || tagged && got[host][0].Tag.VID != v.VID):
							t.Errorf("network %d, VID %d: host %d gets %v from %d", i, v.VID, host, got[host], in.Host)
						}
					}
				}
				if untagged == 0 && len(b.flood(in, false, transport.Tag{})) > 0 {
					t.Errorf("network %d: a frame without a tag reaches somebody", i)
				}
			}
		}
	}
}

func TestPortsNameTheirPeers(t *testing.T) {
	table := vlantest.Must(vlantest.Must(topology.FatTree(3, 2, 2)).Ports(topology.PortOptions{}))
	at := map[[2]int]topology.Port{}
	for _, p := range table.Ports {
		at[[2]int{p.Switch, p.Number}] = p
	}
	for _, p := range table.Ports {
		if p.Link < 0 {
			continue
		}
		if back := at[[2]int{p.Peer, p.PeerPort}]; back.Peer != p.Switch || back.PeerPort != p.Number || back.Link != p.Link {
			t.Errorf("%+v leads to %+v", p, back)
		}
	}
}

func TestPortsSayWhatIsWrong(t *testing.T) {
	net := vlantest.Must(topology.FatTree(2, 2, 1))
	none := *net
	none.VLANs = nil
	for _, c := range []struct {
		net  *topology.Topology
		opt  topology.PortOptions
		want string
	}{
		{&none, topology.PortOptions{}, "no VLAN to set up (compute some)"},
		{net, topology.PortOptions{Untagged: 3}, "VLAN 3 for frames without a tag is not in the topology (it has 1-2)"},
		{net, topology.PortOptions{Name: "swp"}, `port name "swp": want a name with one %d for the port's number, such as swp%d`},
		{net, topology.PortOptions{Name: "swp%d%d"}, `port name "swp%d%d": want a name with one %d for the port's number, such as swp%d`},
		{net, topology.PortOptions{Name: "$(reboot)%d"}, `port name "$(reboot)%d": want a name with one %d for the port's number, such as swp%d`},
	} {
		_, err := c.net.Ports(c.opt)
		if !errors.Is(err, topology.ErrInvalid) || err.Error() != "bad topology: "+c.want {
			t.Errorf("%v\nwant bad topology: %s", err, c.want)
		}
	}
}

func TestCiscoReservesVIDs(t *testing.T) {
	for vid := transport.VID(1000); vid < 1009; vid++ {
		net := vlantest.Must(topology.FatTree(2, 2, 1))
		net.VLANs[1].VID = vid
		err := vlantest.Must(net.Ports(topology.PortOptions{})).WriteCisco(new(strings.Builder))
		if vid < 1002 || vid > 1005 {
			if err != nil {
				t.Error(err)
			}
		} else if want := fmt.Sprintf("VLAN %d: such switches reserve VIDs 1002 to 1005", vid); !errors.Is(err, topology.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A list of many VIDs takes several commands, which together name each once.
func TestCiscoSplitsLongLists(t *testing.T) {
	net := vlantest.Must(topology.FatTree(1, 80, 1))
	for i := range net.VLANs {
		net.VLANs[i].VID = transport.VID(2*i + 2000)
	}
	var b strings.Builder
	if err := vlantest.Must(net.Ports(topology.PortOptions{})).WriteCisco(&b); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(b.String(), " no shutdown")
	var got []string
	for line := range strings.Lines(first) {
		if list, ok := strings.CutPrefix(line, " switchport trunk allowed vlan "); ok {
			if len(line) > 255 {
				t.Errorf("a line of %d characters", len(line))
			}
			if strings.HasPrefix(list, "add ") != (len(got) > 0) {
				t.Errorf("%q after %d VIDs", line, len(got))
			}
			got = append(got, strings.Split(strings.TrimSpace(strings.TrimPrefix(list, "add ")), ",")...)
		}
	}
	if len(got) != 80 || got[0] != "2000" || got[79] != "2158" {
		t.Errorf("%v", got)
	}
}

// What is pasted into a session is taken as it is: a question mark would ask for help in the midst of a
// line, and a description has 240 bytes at most.
func TestCiscoTakesAnyName(t *testing.T) {
	long := strings.Repeat("é", 127)
	net := &topology.Topology{
		Switches: []string{"leaf?"},
		Hosts:    []topology.Host{{Name: "who?", Rate: topology.Gbps}, {Name: long, Rate: topology.Gbps}},
		VLANs:    []topology.VLAN{{VID: 5}},
	}
	var b strings.Builder
	if err := vlantest.Must(net.Ports(topology.PortOptions{})).WriteCisco(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"! on leaf_\n", " description to who_\n", " description to " + long[:236] + "\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "?") {
		t.Errorf("a question mark in\n%s", b.String())
	}
}

// VLANs of the extended range are told of, where there are some.
func TestCiscoTellsOfVTP(t *testing.T) {
	for vid, want := range map[transport.VID]bool{5: false, 1001: false, 1006: true, 4093: true} {
		net := vlantest.Must(topology.FatTree(2, 2, 1))
		net.VLANs[1].VID = vid
		var b strings.Builder
		if err := vlantest.Must(net.Ports(topology.PortOptions{})).WriteCisco(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), `! see "show vtp status", and give "vtp mode transparent" first`) != want {
			t.Errorf("VID %d: told of VTP: %v, want %v", vid, !want, want)
		}
	}
}

func ExampleTopology_Ports() {
	net, err := topology.FatTree(2, 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	ports, err := net.Ports(topology.PortOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = ports.WriteTable(os.Stdout)
	// Output:
	// # switch  port  leads to  tagged  untagged
	// leaf0     1     node0     1-2     none
	// leaf0     2     top0:1    1       none
	// leaf0     3     top1:1    2       none
	// leaf1     1     node1     1-2     none
	// leaf1     2     top0:2    1       none
	// leaf1     3     top1:2    2       none
	// top0      1     leaf0:2   1       none
	// top0      2     leaf1:2   1       none
	// top1      1     leaf0:3   2       none
	// top1      2     leaf1:3   2       none
}

func ExamplePortTable_WriteBridge() {
	net := &topology.Topology{
		Switches: []string{"leaf"},
		Hosts:    []topology.Host{{Name: "a", Rate: topology.Gbps}, {Name: "b", Rate: topology.Gbps}},
		VLANs:    []topology.VLAN{{VID: 5}, {VID: 6}, {VID: 7}},
	}
	ports, err := net.Ports(topology.PortOptions{Untagged: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = ports.WriteBridge(os.Stdout)
	// Output:
	// # on leaf
	// ip link add name br0 type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0
	// ip link set dev swp1 master br0 # to a
	// bridge vlan add dev swp1 vid 5-6
	// bridge vlan add dev swp1 vid 7 pvid untagged
	// ip link set dev swp1 up
	// ip link set dev swp2 master br0 # to b
	// bridge vlan add dev swp2 vid 5-6
	// bridge vlan add dev swp2 vid 7 pvid untagged
	// ip link set dev swp2 up
	// ip link set dev br0 up
}

func ExamplePortTable_WriteCisco() {
	net, err := topology.FatTree(1, 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	ports, err := net.Ports(topology.PortOptions{Name: "Ethernet%d"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var b strings.Builder
	if err := ports.WriteCisco(&b); err != nil {
		fmt.Println(err)
		return
	}
	leaf, _, _ := strings.Cut(b.String(), "interface Ethernet3")
	fmt.Print(leaf)
	// Output:
	// ! on leaf0
	// configure terminal
	// ! switches without ISL refuse the lines with "encapsulation": they do without
	// vlan 2
	//  exit
	// interface Ethernet1
	//  description to node0
	//  switchport trunk encapsulation dot1q
	//  switchport mode trunk
	//  switchport trunk native vlan 4094
	//  switchport trunk allowed vlan 1-2
	//  no shutdown
	//  exit
	// interface Ethernet2
	//  description to top0:1
	//  switchport trunk encapsulation dot1q
	//  switchport mode trunk
	//  switchport trunk native vlan 4094
	//  switchport trunk allowed vlan 1
	//  no shutdown
	//  exit
}
