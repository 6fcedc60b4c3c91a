package topology_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/topology"
)

const twoTops = `# two leaves, two tops
rate: 1G
switches: [leaf0, leaf1, top0, top1]
hosts:
  - {name: node0, switch: leaf0}
  - {name: node1, switch: leaf1, rate: 100M}
links:
  - {between: [leaf0, top0], rate: 10G}
  - {between: [top0, leaf1]}
  - between: [leaf0, top1]
  - between: [leaf1, top1]
vlans:
  - {vid: 20, links: [leaf1-top1, leaf0-top1]}
  - {vid: 10, links: [leaf0-top0, leaf1-top0]}
`

func TestRead(t *testing.T) {
	got, err := topology.Read("net.yaml", strings.NewReader(twoTops))
	want := &topology.Topology{
		Switches: []string{"leaf0", "leaf1", "top0", "top1"},
		Hosts:    []topology.Host{{Name: "node0", Switch: 0, Rate: topology.Gbps}, {Name: "node1", Switch: 1, Rate: 100 * topology.Mbps}},
		Links:    []topology.Link{{A: 0, B: 2, Rate: 10 * topology.Gbps}, {A: 2, B: 1, Rate: topology.Gbps}, {A: 0, B: 3, Rate: topology.Gbps}, {A: 1, B: 3, Rate: topology.Gbps}},
		VLANs:    []topology.VLAN{{VID: 10, Links: []int{0, 1}}, {VID: 20, Links: []int{2, 3}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// The file that the documentation shows.
func TestTopologyOfTheDocumentation(t *testing.T) {
	text := string(vlantest.Must(os.ReadFile("../../docs/topologies.md")))
	_, rest, _ := strings.Cut(text, "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	net, err := topology.Read("topologies.md", strings.NewReader(example))
	if err != nil || len(net.VLANs) != 2 || net.Hosts[1].Rate != 100*topology.Mbps {
		t.Errorf("%+v, %v", net, err)
	}
}

// wrongFiles are changes of twoTops that make it wrong, and what is said.
var wrongFiles = []struct{ what, old, new, want string }{
	{"a switch that is not there", "[leaf0, top1]", "[leaf0, top9]", "net.yaml:10: link leaf0-top9: no such switch: top9 (want one of leaf0, leaf1, top0, top1)"},
	{"a host on none", "switch: leaf1", "switch: leaf7", "net.yaml:6: host 1: no such switch: leaf7 (want one of leaf0, leaf1, top0, top1)"},
	{"a link that is not there", "leaf1-top1, ", "leaf1-leaf0, ", "net.yaml:13: vlan 0: no such link: leaf1-leaf0 (want one of leaf0-top0, top0-leaf1, leaf0-top1, leaf1-top1)"},
	{"a link twice", "leaf1-top1, leaf0-top1", "leaf0-top1, leaf1-top1, top1-leaf0", "net.yaml:13: vlan 0: a link is listed twice (want each once)"},
	{"a loop", "[leaf0-top0, leaf1-top0]", "[leaf0-top0, leaf1-top0, leaf0-top1, leaf1-top1]", "net.yaml:14: VLAN 10: loop top1-leaf0-top0-leaf1-top1"},
	{"a leaf that is cut off", "leaf1-top1, leaf0-top1", "leaf1-top1", "net.yaml:13: VLAN 20: leaf1, where host node1 is, is cut off from leaf0"},
	{"VID 0", "vid: 20", "vid: 0", "net.yaml:13: vlan 0: vid 0: want 1 to 4094"},
	{"a VID twice", "vid: 10", "vid: 20", "net.yaml:14: vlan 1: vid 20: is on line 13, too (want it once)"},
	{"a VID in words", "vid: 10", "vid: ten", `net.yaml:14: vlan 1: vid: "ten" (want a number of 1 to 4094)`},
	{"no rate", "rate: 1G\n", "\n", "net.yaml:5: host 0: no rate (give it one, as 1G, or the topology one for all)\n" +
		"net.yaml:9: link top0-leaf1: no rate (give it one, as 1G, or the topology one for all)\n" +
		"net.yaml:10: link leaf0-top1: no rate (give it one, as 1G, or the topology one for all)\n" +
		"net.yaml:11: link leaf1-top1: no rate (give it one, as 1G, or the topology one for all)"},
	{"a bad rate", "rate: 10G", "rate: fast", `net.yaml:8: link leaf0-top0: rate "fast": want bits per second as 100M, 1G or 2.5G`},
	{"a rate of 0", "rate: 10G", "rate: 0", `net.yaml:8: link leaf0-top0: rate "0": want bits per second as 100M, 1G or 2.5G`},
	{"a name twice", "name: node1", "name: node0", "net.yaml:6: host node0: the name is taken already"},
	{"a name with a space", "name: node1", "name: node 1", `net.yaml:6: host "node 1": a name with spaces or what cannot be printed`},
	{"no name", "name: node1, ", "", "net.yaml:6: host 1: no name (want name, switch, rate if needed)"},
	{"one end", "[leaf0, top1]", "[leaf0]", "net.yaml:10: link 2: between: 1 switches (want 2)"},
	{"three ends", "[leaf0, top1]", "[leaf0, top0, top1]", "net.yaml:10: link 2: between: 3 entries (want at most 2)"},
	{"a link to itself", "[leaf0, top1]", "[leaf0, leaf0]", "net.yaml:10: link leaf0-leaf0: both ends are one switch (want two)"},
	{"an unknown key", "vlans:", "lans:", `net.yaml:12: topology: unknown key "lans" (want rate if needed, switches, hosts, links if needed, vlans if needed)`},
	{"a key twice", "rate: 1G", "rate: 1G\nrate: 2G", `net.yaml:3: topology: "rate" is on line 2, too (want it once)`},
	{"an alias", "[leaf0-top0, leaf1-top0]", "*x", "net.yaml:14: "},
	{"no YAML", "switches: [", "switches: ]", "net.yaml:3: not YAML: "},
	{"a second document", "# two", "---\na: b\n---\n# two", "net.yaml:3: a second document (want one)"},
	{"a switch that is a list", "switches: [leaf0,", "switches: [[], leaf0,", "net.yaml:3: switch: a list (want a text)"},
	{"a host on a list", "switch: leaf1", "switch: []", "net.yaml:6: host 1: switch: a list (want a text)"},
	{"a rate that is a list", "rate: 10G", "rate: []", "net.yaml:8: link leaf0-top0: rate: a list (want a text)"},
	{"a link of a VLAN that is a list", "[leaf0-top0, leaf1-top0]", "[[]]", "net.yaml:14: vlan 1: link: a list (want a text)"},
	{"a list and a link that is not there", "[leaf0-top0, leaf1-top0]", "[[], leaf9-top9]", "net.yaml:14: vlan 1: link: a list (want a text)\n" +
		"net.yaml:14: vlan 1: no such link: leaf9-top9 (want one of leaf0-top0, top0-leaf1, leaf0-top1, leaf1-top1)"},
	{"no switches", "switches: [leaf0, leaf1, top0, top1]", "switches: []",
		"net.yaml:5: host 0: no such switch: leaf0 (want one, and there is none)\nnet.yaml:6: "},
	{"a host on none of many", "top1]\nhosts:\n  - {name: node0, switch: leaf0}", "top1, a, b, c, d, e]\nhosts:\n  - {name: node0, switch: leaf9}",
		"net.yaml:5: host 0: no such switch: leaf9 (want one of leaf0, leaf1, top0, top1, a, b, c, d ...)"},
}

func TestTopologyFileSaysWhereAndWhat(t *testing.T) {
	for _, c := range wrongFiles {
		t.Run(c.what, func(t *testing.T) {
			text := strings.Replace(twoTops, c.old, c.new, 1)
			if text == twoTops {
				t.Fatalf("%q is not in the text", c.old)
			}
			_, err := topology.Read("net.yaml", strings.NewReader(text))
			var fault *strictyaml.SyntaxError
			if !errors.Is(err, topology.ErrInvalid) || !errors.As(err, &fault) {
				t.Fatalf("%v, want a SyntaxError that is ErrInvalid", err)
			}
			if got := err.Error(); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTopologyFileIsNotEndless(t *testing.T) {
	_, err := topology.Read("net.yaml", io.LimitReader(spaces{}, 1<<40))
	if !errors.Is(err, topology.ErrInvalid) || !strings.Contains(err.Error(), "too large (want at most 8388608 bytes)") {
		t.Error(err)
	}
}

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// A file that names all links otherwise costs as many steps as it has names, and not as many times
// the links.
func TestTopologyFileOfManyWrongLinks(t *testing.T) {
	const links = 1000
	var b strings.Builder
	b.WriteString("rate: 1G\nswitches: [a, b]\nhosts: []\nlinks:\n")
	b.WriteString(strings.Repeat("  - {between: [a, b]}\n", links))
	b.WriteString("vlans:\n  - {vid: 1, links: [a_b" + strings.Repeat(", a_b", links-1) + "]}\n")
	allocs := testing.AllocsPerRun(1, func() {
		_, err := topology.Read("net.yaml", strings.NewReader(b.String()))
		if err == nil || !strings.Contains(err.Error(), "no such link: a_b (want one of a-b, a-b#2") {
			t.Errorf("%v", err)
		}
	})
	if allocs > 200*links {
		t.Errorf("%.0f allocations for %d wrong names", allocs, links)
	}
}

func TestTopologyFileReportsTheReadersError(t *testing.T) {
	if _, err := topology.Read("net.yaml", brokenReader{}); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, fs.ErrPermission }

func TestTopologyComesBackFromItsFile(t *testing.T) {
	odd := vlantest.Must(topology.FatTree(2, 2, 2))
	odd.Switches[0], odd.Switches[1], odd.Hosts[0].Name, odd.Hosts[1].Name = "null", "it's:{1}", "12", "käse#"
	odd.Hosts[2].Rate, odd.Links[0].Rate = topology.Gbps/3, 123
	slowHost := vlantest.Must(topology.FatTree(2, 2, 2))
	slowHost.Hosts[3].Rate = 100 * topology.Mbps
	nets := []*topology.Topology{odd, slowHost, vlantest.Must(topology.Flat(3)), vlantest.Must(topology.Parse("vbft3:2x2x2x2x2")), {Switches: []string{"alone"}}}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		nets = append(nets, vlantest.RandomNetwork(r, 1+r.IntN(10), r.IntN(20), r.IntN(4)))
	}
	for i, net := range nets {
		var b bytes.Buffer
		n, err := net.WriteTo(&b)
		if err != nil || n != int64(b.Len()) {
			t.Fatalf("network %d: %d bytes, %v", i, n, err)
		}
		got, err := topology.Read("net.yaml", bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(got, net) {
			t.Errorf("network %d: %+v, %v\nwant %+v\nfrom\n%s", i, got, err, net, &b)
		}
	}
}

func TestWriteToRefusesWhatCannotBeRead(t *testing.T) {
	net := vlantest.Must(topology.FatTree(2, 2, 2))
	net.VLANs[0].VID = 0
	var b bytes.Buffer
	if _, err := net.WriteTo(&b); !errors.Is(err, topology.ErrInvalid) || b.Len() > 0 {
		t.Errorf("%v, %q", err, &b)
	}
}

func TestLoadTopology(t *testing.T) {
	open := func(name string) (io.ReadCloser, error) {
		if name != "net.yaml" {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(twoTops)), nil
	}
	for spec, switches := range map[string]int{"vbft:4x2x1": 6, "net.yaml": 4} {
		if got, err := topology.Load(spec, open); err != nil || len(got.Switches) != switches {
			t.Errorf("%s: %+v, %v", spec, got, err)
		}
	}
	_, err := topology.Load("vbtf:4x2x1", open)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), `topology "vbtf:4x2x1": no spec (there are: flat:HOSTS, `) {
		t.Error(err)
	}
	if _, err := topology.Load("vbft:4x2", open); !errors.Is(err, topology.ErrInvalid) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(twoTops))
	f.Add([]byte("switches: [a, a-b, b-c, c]\nhosts: []\nlinks: [{between: [a, b-c], rate: 1}, {between: [a-b, c], rate: 1}]"))
	f.Add([]byte("switches: [a, b]\nhosts: []\nrate: 1\nlinks: [{between: [a, b]}, {between: [b, a]}, {between: [a, b]}]\nvlans: [{vid: 1, links: ['a-b#2']}]"))
	f.Add([]byte("switches: &x [a, *x]\nhosts: *x"))
	for _, c := range wrongFiles {
		f.Add([]byte(strings.Replace(twoTops, c.old, c.new, 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		net, err := topology.Read("net.yaml", bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, topology.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
			return
		}
		if err := net.Validate(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := net.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		again, err := topology.Read("net.yaml", bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(again, net) {
			t.Errorf("%+v\nread again %+v, %v, from\n%s", net, again, err, &b)
		}
	})
}

func ExampleRead() {
	net, err := topology.Read("net.yaml", strings.NewReader(`
rate: 1G
switches: [left, right]
hosts:
  - {name: a, switch: left}
  - {name: b, switch: right}
links:
  - {between: [left, right]}
  - {between: [left, right]}
vlans:
  - {vid: 1, links: [left-right]}
  - {vid: 2, links: [left-right#3]}
`))
	fmt.Println(net, err)
	// Output: <nil> net.yaml:12: vlan 1: no such link: left-right#3 (want one of left-right, left-right#2)
}

func ExampleTopology_WriteTo() {
	net, err := topology.FatTree(2, 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = net.WriteTo(os.Stdout)
	// Output:
	// rate: 1G
	// switches: [leaf0, leaf1, top0, top1]
	// hosts:
	//   - {name: node0, switch: leaf0}
	//   - {name: node1, switch: leaf1}
	// links:
	//   - {between: [leaf0, top0]}
	//   - {between: [leaf0, top1]}
	//   - {between: [leaf1, top0]}
	//   - {between: [leaf1, top1]}
	// vlans:
	//   - {vid: 1, links: [leaf0-top0, leaf1-top0]}
	//   - {vid: 2, links: [leaf0-top1, leaf1-top1]}
}
