package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

// bare returns a network of switches with a host each, and the given cables.
func bare(switches int, links ...topology.Link) *topology.Topology {
	t := &topology.Topology{Links: links}
	for s := range switches {
		t.Switches = append(t.Switches, fmt.Sprintf("s%d", s))
		t.Hosts = append(t.Hosts, topology.Host{Name: fmt.Sprintf("h%d", s), Switch: s, Rate: topology.Gbps})
	}
	for i := range t.Links {
		t.Links[i].Rate = topology.Gbps
	}
	return t
}

func ring(n int) *topology.Topology {
	var links []topology.Link
	for s := range n {
		links = append(links, topology.Link{A: s, B: (s + 1) % n})
	}
	return bare(n, links...)
}

func hypercube(dimensions int) *topology.Topology {
	var links []topology.Link
	for s := range 1 << dimensions {
		for d := range dimensions {
			if t := s ^ 1<<d; t > s {
				links = append(links, topology.Link{A: s, B: t})
			}
		}
	}
	return bare(1<<dimensions, links...)
}

// checkVLANs makes sure of all that ComputeVLANs promises.
func checkVLANs(t *testing.T, net *topology.Topology, opt topology.VLANOptions) (*topology.Topology, topology.VLANReport) {
	t.Helper()
	vlans, report, err := topology.ComputeVLANs(net, opt)
	if err != nil {
		t.Fatal(err)
	}
	result := *net
	result.VLANs = vlans
	if err := result.Validate(); err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for i, p := range report.Paths {
		if p.VID == 0 {
			dropped++
			continue
		}
		a := slices.IndexFunc(net.Hosts, func(h topology.Host) bool { return h.Switch == p.From })
		b := slices.IndexFunc(net.Hosts, func(h topology.Host) bool { return h.Switch == p.To })
		if got := vlantest.Must(result.Path(a, b, p.VID)); !slices.Equal(got, p.Hops) {
			t.Errorf("VID %d leads over %s, want the path that was chosen, %s", p.VID, net.PathName(got), net.PathName(p.Hops))
		}
		for _, q := range report.Paths[:i] {
			if p.From == q.From && p.To == q.To && p.VID == q.VID {
				t.Errorf("%s and %s are in VID %d both", net.PathName(p.Hops), net.PathName(q.Hops), p.VID)
			}
		}
	}
	if dropped != report.Dropped {
		t.Errorf("%d paths have no VLAN, the report says %d", dropped, report.Dropped)
	}
	if report.Dropped == 0 && len(vlans) < report.AtLeast {
		t.Errorf("%d VLANs, fewer than can be: %d", len(vlans), report.AtLeast)
	}
	if len(report.Paths) > 0 && len(vlans) > len(report.Paths) {
		t.Errorf("%d VLANs for %d paths", len(vlans), len(report.Paths))
	}
	return &result, report
}

func TestComputeVLANs_FindsTheFatTree(t *testing.T) {
	for _, c := range []struct{ leaves, tops int }{{2, 1}, {2, 2}, {3, 2}, {4, 4}, {8, 4}, {5, 7}, {16, 8}} {
		net := vlantest.Must(topology.FatTree(c.leaves, c.tops, 2))
		got, report := checkVLANs(t, net, topology.VLANOptions{})
		if len(got.VLANs) != c.tops || report.AtLeast != c.tops || len(report.UnusedLinks) > 0 {
			t.Errorf("%d leaves, %d tops: %d VLANs, bound %d, unused %v", c.leaves, c.tops, len(got.VLANs), report.AtLeast, report.UnusedLinks)
		}
		if !sameTrees(got.VLANs, net.VLANs) {
			t.Errorf("%d leaves, %d tops: %v, want %v", c.leaves, c.tops, got.VLANs, net.VLANs)
		}
	}
}

func sameTrees(a, b []topology.VLAN) bool {
	trees := func(vlans []topology.VLAN) (all [][]int) {
		for _, v := range vlans {
			all = append(all, v.Links)
		}
		slices.SortFunc(all, slices.Compare)
		return all
	}
	return reflect.DeepEqual(trees(a), trees(b))
}

func TestComputeVLANs_FatTreeOfThreeLevels_OneVLANPerTopSwitch(t *testing.T) {
	for _, spec := range []string{"vbft3:2x2x2x2x1", "vbft3:4x4x2x2x2", "vbft3:8x4x2x2x1", "vbft3:3x5x4x2x1"} {
		net := vlantest.Must(topology.Parse(spec))
		got, report := checkVLANs(t, net, topology.VLANOptions{})
		if len(report.UnusedLinks) > 0 || len(got.VLANs) != len(net.VLANs) {
			t.Errorf("%s: %d VLANs (the generator has %d), unused %v", spec, len(got.VLANs), len(net.VLANs), report.UnusedLinks)
		}
	}
}

// In a ring the way round one link and the link itself are both wanted, for each link: so there is
// a VLAN without each.
func TestComputeVLANs_Ring(t *testing.T) {
	for n := 3; n <= 12; n++ {
		net := ring(n)
		got, report := checkVLANs(t, net, topology.VLANOptions{})
		if len(got.VLANs) != n || report.AtLeast != n || len(report.Paths) != n*(n-1) {
			t.Errorf("ring of %d: %d VLANs, bound %d, %d paths", n, len(got.VLANs), report.AtLeast, len(report.Paths))
		}
		got, _ = checkVLANs(t, net, topology.VLANOptions{Paths: 1})
		if len(got.VLANs) > 3 {
			t.Errorf("ring of %d, shortest paths alone: %d VLANs, want 3 at most", n, len(got.VLANs))
		}
	}
}

// Between corners of a hypercube there are as many disjoint paths as it has dimensions, and greedy
// choice finds that many paths.
func TestComputeVLANs_Hypercube(t *testing.T) {
	for d, most := range map[int]int{1: 1, 2: 4, 3: 9, 4: 28, 5: 82} { // VLANs: docs/topologies.md has them
		net := hypercube(d)
		n := 1 << d
		got, report := checkVLANs(t, net, topology.VLANOptions{})
		if len(report.Paths) != d*n*(n-1)/2 || len(report.UnusedLinks) > 0 || len(got.VLANs) > most {
			t.Errorf("hypercube of %d: %d paths, unused %v, %d VLANs (want %d at most)", d, len(report.Paths), report.UnusedLinks, len(got.VLANs), most)
		}
	}
}

func TestComputeVLANs_RandomGraphs(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			net := vlantest.RandomNetwork(r, 1+r.IntN(14), r.IntN(20), 0)
			net.Hosts = net.Hosts[:1+r.IntN(len(net.Hosts))] // the other switches have none
			checkVLANs(t, net, topology.VLANOptions{})
			checkVLANs(t, net, topology.VLANOptions{Paths: 1 + r.IntN(4), MaxVLANs: 1 + r.IntN(4), FirstVID: 100, Seed: seed})
		})
	}
}

// The first path is a shortest one, and the second shares nothing with it where that can be.
func TestComputeVLANs_PathsAreShortAndDisjoint(t *testing.T) {
	net := hypercube(3)
	_, report := checkVLANs(t, net, topology.VLANOptions{Paths: 2})
	for i := 0; i < len(report.Paths); i += 2 {
		first, second := report.Paths[i], report.Paths[i+1]
		apart := 0
		for x := first.From ^ first.To; x > 0; x &= x - 1 {
			apart++
		}
		if len(first.Hops) != apart {
			t.Errorf("%s has %d hops, want %d", net.PathName(first.Hops), len(first.Hops), apart)
		}
		for _, h := range second.Hops {
			if slices.Contains(first.Hops, h) || slices.Contains(first.Hops, h.Reverse()) {
				t.Errorf("%s and %s share %s", net.PathName(first.Hops), net.PathName(second.Hops), net.HopName(h))
			}
		}
	}
}

// Where all paths cross one bridge, there are still several: each side has two ways to it.
func TestComputeVLANs_PathsMayShareABridge(t *testing.T) {
	net := bare(4, topology.Link{A: 0, B: 1}, topology.Link{A: 0, B: 1}, topology.Link{A: 1, B: 2}, topology.Link{A: 2, B: 3}, topology.Link{A: 2, B: 3})
	net.Hosts = []topology.Host{{Name: "a", Switch: 0, Rate: 1}, {Name: "b", Switch: 3, Rate: 1}}
	got, report := checkVLANs(t, net, topology.VLANOptions{})
	if len(got.VLANs) != 2 || len(report.UnusedLinks) > 0 {
		t.Errorf("%v, unused %v", got.VLANs, report.UnusedLinks)
	}
}

func TestComputeVLANs_KeepsToTheLimit(t *testing.T) {
	net := ring(8)
	got, report := checkVLANs(t, net, topology.VLANOptions{MaxVLANs: 3, FirstVID: 4092})
	if len(got.VLANs) != 3 || got.VLANs[0].VID != 4092 || got.VLANs[2].VID != 4094 {
		t.Errorf("%v", got.VLANs)
	}
	if report.Dropped == 0 {
		t.Error("a ring of 8 has paths for 8 VLANs: want some dropped")
	}
}

func TestComputeVLANs_IsDeterministic(t *testing.T) {
	net := hypercube(4)
	for _, opt := range []topology.VLANOptions{{}, {Seed: 1}, {Seed: 2, Tries: 1}} {
		a, reportA, errA := topology.ComputeVLANs(net, opt)
		b, reportB, errB := topology.ComputeVLANs(net, opt)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) || !reflect.DeepEqual(reportA, reportB) {
			t.Errorf("%+v: two results", opt)
		}
	}
}

func TestComputeVLANs_RandomOrdersHelp(t *testing.T) {
	few, _ := checkVLANs(t, hypercube(4), topology.VLANOptions{Paths: 2, Tries: 1})
	many, _ := checkVLANs(t, hypercube(4), topology.VLANOptions{Paths: 2})
	if len(many.VLANs) >= len(few.VLANs) {
		t.Errorf("%d VLANs with one try, %d with thirty", len(few.VLANs), len(many.VLANs))
	}
	results := map[int]bool{}
	for seed := range uint64(10) {
		got, _ := checkVLANs(t, hypercube(3), topology.VLANOptions{Paths: 2, Tries: 20, Seed: seed})
		results[len(got.VLANs)] = true
	}
	if len(results) < 2 {
		t.Errorf("ten seeds, one result: %v", results)
	}
}

// A VLAN that must be made to reach b takes the detour by c, which no VLAN has, and not the link
// that one has already.
func TestComputeVLANs_ExtendsByWhatIsUnused(t *testing.T) {
	net := bare(4, topology.Link{A: 0, B: 1}, topology.Link{A: 0, B: 2}, topology.Link{A: 2, B: 1}, topology.Link{A: 0, B: 3}, topology.Link{A: 0, B: 3})
	net.Hosts = slices.Delete(net.Hosts, 2, 3) // c is switch 2
	got, report := checkVLANs(t, net, topology.VLANOptions{Paths: 1})
	want := []topology.VLAN{{VID: 1, Links: []int{0, 4}}, {VID: 2, Links: []int{1, 2, 3}}}
	if !reflect.DeepEqual(got.VLANs, want) || len(report.UnusedLinks) > 0 {
		t.Errorf("%v, unused %v, want %v", got.VLANs, report.UnusedLinks, want)
	}
}

// A dead end is left out in time for its length: with its square, this would take longer than a test may.
func TestComputeVLANs_LeavesOutLongDeadEnds(t *testing.T) {
	net := bare(2, topology.Link{A: 0, B: 1}, topology.Link{A: 0, B: 1})
	for s := 2; s < 1<<18; s++ {
		net.Switches = append(net.Switches, fmt.Sprintf("s%d", s))
		net.Links = append(net.Links, topology.Link{A: s - 1, B: s, Rate: topology.Gbps})
	}
	vlans, _, err := topology.ComputeVLANs(net, topology.VLANOptions{})
	want := []topology.VLAN{{VID: 1, Links: []int{0}}, {VID: 2, Links: []int{1}}}
	if err != nil || !reflect.DeepEqual(vlans, want) {
		t.Errorf("%d VLANs, %v; want two, of one link each", len(vlans), err)
	}
}

func TestComputeVLANs_SaysWhatIsWrong(t *testing.T) {
	apart := bare(3, topology.Link{A: 0, B: 1})
	for _, c := range []struct {
		what string
		net  *topology.Topology
		opt  topology.VLANOptions
		want string
	}{
		{"a switch apart", apart, topology.VLANOptions{}, "no links lead from s0 to s2"},
		{"a bad link", bare(2, topology.Link{A: 0, B: 2}), topology.VLANOptions{}, "link 0: switches 0 and 2 (want 0 to 1)"},
		{"a VID beyond all", ring(3), topology.VLANOptions{FirstVID: 4095}, "first VID 4095 (want 1 to 4094)"},
		{"more VLANs than VIDs", ring(3), topology.VLANOptions{FirstVID: 4094, MaxVLANs: 2}, "2 VLANs from VID 4094 on (want 1 to 1)"},
		{"no VLANs", ring(3), topology.VLANOptions{MaxVLANs: -1}, "-1 VLANs from VID 1 on (want 1 to 4094)"},
		{"no paths", ring(3), topology.VLANOptions{Paths: -1}, "-1 paths (want 1 or more)"},
		{"endless tries", ring(3), topology.VLANOptions{Tries: 1 << 30}, "1073741824 tries (want 1 to 1024)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, _, err := topology.ComputeVLANs(c.net, c.opt)
			if !errors.Is(err, topology.ErrInvalid) || err.Error() != "compute VLANs: bad topology: "+c.want {
				t.Errorf("%v\nwant compute VLANs: bad topology: %s", err, c.want)
			}
		})
	}
}

func TestComputeVLANs_OneSwitchNeedsNoLinks(t *testing.T) {
	got, _ := checkVLANs(t, vlantest.Must(topology.Flat(4)), topology.VLANOptions{FirstVID: 7})
	if len(got.VLANs) != 1 || got.VLANs[0].VID != transport.VID(7) {
		t.Errorf("%v", got.VLANs)
	}
}

func ExampleComputeVLANs() {
	net := &topology.Topology{
		Switches: []string{"a", "b", "c"},
		Links:    []topology.Link{{A: 0, B: 1, Rate: topology.Gbps}, {A: 1, B: 2, Rate: topology.Gbps}, {A: 0, B: 2, Rate: topology.Gbps}},
		Hosts: []topology.Host{
			{Name: "node0", Switch: 0, Rate: topology.Gbps},
			{Name: "node1", Switch: 1, Rate: topology.Gbps},
			{Name: "node2", Switch: 2, Rate: topology.Gbps},
		},
	}
	vlans, report, err := topology.ComputeVLANs(net, topology.VLANOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range vlans {
		fmt.Println("VID", v.VID, net.LinkName(v.Links[0]), net.LinkName(v.Links[1]))
	}
	for _, p := range report.Paths[:2] {
		fmt.Println(net.PathName(p.Hops), "on VID", p.VID)
	}
	// Output:
	// VID 1 b-c a-c
	// VID 2 a-b b-c
	// VID 3 a-b a-c
	// a>b on VID 2
	// a>c>b on VID 1
}
