package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// at gives all nodes of a cluster the same places in all tables.
func (c *cluster) at(t *testing.T, places []mcd.Place) {
	t.Helper()
	for _, e := range c.eps {
		moveTo(t, e, places)
	}
}

// moveTo gives the nodes in an endpoint's table places.
func moveTo(t *testing.T, e *mcd.Endpoint, places []mcd.Place) {
	t.Helper()
	table := e.Nodes()
	for i := range table {
		table[i].Place = places[i]
	}
	if err := e.SetNodes(table); err != nil {
		t.Fatal(err)
	}
}

// on is the place of a process of a host.
func on(host uint64, cores uint64, usable uint16, path transport.LocalPath) mcd.Place {
	return mcd.Place{Host: host, Cores: cores, Usable: usable, Path: path}
}

// each host's cores are counted by what its nodes may use between them, and what they use at once.
func TestGroup_Shape(t *testing.T) {
	repeat := func(n int, p mcd.Place) (all []mcd.Place) {
		for range n {
			all = append(all, p)
		}
		return all
	}
	for _, c := range []struct {
		name   string
		places []mcd.Place
		shape  string
		local  schedule.LogP // of the first host
	}{
		{"processes of one host", repeat(8, on(1, 3, 1, transport.ByKernel)), "1 host: 8 ranks on 2 cores", schedule.KernelCosts},
		{"through memory", repeat(8, on(1, 3, 1, transport.ByMemory)), "1 host: 8 ranks on 2 cores", schedule.MemoryCosts},
		{"of one process", repeat(8, on(1, 15, 4, transport.InProcess)), "1 host: 8 ranks on 4 cores", schedule.FabricCosts},
		{"of one process that uses one core", repeat(8, on(1, 15, 1, transport.InProcess)), "1 host: 8 ranks on 1 core", schedule.FabricCosts},
		{"pinned to a core each", []mcd.Place{on(1, 1, 1, 0), on(1, 2, 1, 0), on(1, 4, 1, 0)}, "1 host: 3 ranks on a core each", schedule.KernelCosts},
		{"in containers of a core's time each, of 64", repeat(3, on(1, ^uint64(0), 1, 0)), "1 host: 3 ranks on a core each", schedule.KernelCosts},
		{"on two hosts in turn", []mcd.Place{on(1, 1, 1, 0), on(2, 1, 1, 0), on(1, 1, 1, 0), on(2, 1, 1, 0)},
			"2 hosts: 2 ranks on 1 core; in turn", schedule.KernelCosts},
		{"of unequal hosts", []mcd.Place{on(1, 1, 1, 0), on(2, 1, 1, 0), on(2, 1, 1, 0)},
			"1 host: 1 rank on a core each; 1 host: 2 ranks on 1 core; spread 4190d5e5", schedule.KernelCosts},
		{"one without memory", []mcd.Place{on(1, 1, 1, transport.ByMemory), on(1, 1, 1, transport.ByKernel)},
			"1 host: 2 ranks on 1 core", schedule.KernelCosts},
		{"a path of another version", repeat(2, on(1, 1, 1, 9)), "1 host: 2 ranks on 1 core", schedule.KernelCosts},
		{"one that does not say", []mcd.Place{on(1, 1, 1, 0), {}, on(1, 1, 1, 0)}, "unknown hosts", schedule.LogP{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := bare(t, len(c.places))
			n.at(t, c.places)
			for _, g := range n.groups(t, barrier.GroupConfig{}) {
				s := g.Shape()
				if got := s.String(); got != c.shape {
					t.Errorf("%s, want %s", got, c.shape)
				}
				if s.Known() && s.Hosts[0].Local != c.local {
					t.Errorf("costs %+v, want %+v", s.Hosts[0].Local, c.local)
				}
				if got, want := g.Algorithm().String(), s.Choose(g.Size()).String(); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	}
}

// What an empty config chooses depends on where the members run; a named algorithm does not.
func TestGroup_ChoosesByPlaces(t *testing.T) {
	const size = 16
	n := bare(t, size)
	unknown := n.groups(t, barrier.GroupConfig{})[0].Algorithm().String()
	if want := schedule.Auto().For(size).String(); unknown != want {
		t.Errorf("by unknown places: %s, want %s", unknown, want)
	}
	var places []mcd.Place
	for range size {
		places = append(places, on(1, 3, 1, transport.ByKernel))
	}
	n.at(t, places)
	groups := n.groups(t, barrier.GroupConfig{ID: 1})
	if got, want := groups[0].Algorithm().String(), "concurrent"; got != want || got == unknown {
		t.Errorf("on two cores: %s, want %s, and not %s", got, want, unknown)
	}
	stages(t, groups, 3, func(int, int) {})
	named := n.groups(t, barrier.GroupConfig{ID: 2, Algorithm: schedule.Tree(3)})
	if got := named[0].Algorithm().String(); got != "tree:3" {
		t.Errorf("%s, want tree:3", got)
	}
}

// Members with the same table choose the same, of all and of masks, wherever they run, and their
// barriers hold.
func TestGroup_AllChooseTheSame(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			size := 2 + rng.IntN(11)
			n := bare(t, size)
			hosts, path := 1+rng.IntN(4), transport.LocalPath(rng.IntN(3))
			var places []mcd.Place
			mask := barrier.MaskOf(0, mcd.NodeID(size-1))
			for range size {
				places = append(places, on(1+rng.Uint64N(uint64(hosts)), rng.Uint64N(16)|1, uint16(1+rng.IntN(2)), path))
			}
			n.at(t, places)
			groups := n.groups(t, barrier.GroupConfig{})
			for _, g := range groups {
				if got, want := g.Algorithm().String(), groups[0].Algorithm().String(); got != want {
					t.Errorf("%s and %s", got, want)
				}
			}
			stages(t, groups, 2, func(int, int) {})
			expectNone(t, each([]*barrier.Group{groups[0], groups[size-1]}, func(_ int, g *barrier.Group) error {
				return g.BarrierWith(limit(t), barrier.Options{Members: mask})
			}))
		})
	}
}

// Groups that are there keep their algorithm when a node's place changes; masks of theirs, too.
func TestGroup_KeepsItsPlaces(t *testing.T) {
	const size = 8
	n := bare(t, size)
	before := n.groups(t, barrier.GroupConfig{})
	was := before[0].Algorithm().String()
	var places []mcd.Place
	for range size {
		places = append(places, on(1, 3, 1, transport.ByKernel))
	}
	n.at(t, places)
	if got := before[0].Algorithm().String(); got != was || before[0].Shape().Known() {
		t.Errorf("%s by %v, want %s", got, before[0].Shape(), was)
	}
	stages(t, before, 2, func(int, int) {})
	expectNone(t, each(before[:7], func(_ int, g *barrier.Group) error {
		return g.BarrierWith(limit(t), barrier.Options{Members: barrier.MaskOf(0, 1, 2, 3, 4, 5, 6)})
	}))
}

// Members that know different places choose different algorithms, and are told so.
func TestGroup_DifferentPlacesAreAMismatch(t *testing.T) {
	const size = 16
	n := bare(t, size)
	var places []mcd.Place
	for range size {
		places = append(places, on(1, 3, 1, transport.ByKernel))
	}
	moveTo(t, n.eps[3], places)
	groups := n.groups(t, barrier.GroupConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, err := range each(groups, func(_ int, g *barrier.Group) error { return g.Barrier(ctx) }) {
		var m *barrier.MismatchError
		if !errors.As(err, &m) || len(m.Nodes) < 2 {
			t.Errorf("%v, want a mismatch that names two nodes", err)
		}
	}
}

// A table decides for groups that name no algorithm and for their masks, and the model for sizes that it
// does not have. Members with different tables are told so.
func TestConfig_Table(t *testing.T) {
	table := func(ofAll string) *schedule.Table {
		file := filepath.Join(t.TempDir(), "barriers.table")
		err := os.WriteFile(file, []byte("5 "+ofAll+" -\n3 tree:3 - unknown hosts\n"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		tuned, err := barrier.ReadTable(file)
		if err != nil {
			t.Fatal(err)
		}
		return tuned
	}
	if _, err := barrier.ReadTable(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	n := (&cluster{cfg: barrier.Config{Table: table("star")}}).start(t, 5, mcdtest.Config{})
	tuned := n.groups(t, barrier.GroupConfig{})
	for _, c := range []struct {
		got  *barrier.Group
		want string
	}{
		{tuned[4], "star"},
		{n.groups(t, barrier.GroupConfig{ID: 1, Algorithm: schedule.Tree(2)})[0], "tree:2"},
		{group(t, n.services[0], barrier.GroupConfig{Members: barrier.MaskOf(0, 1, 2)}), "tree:3"},
		{group(t, n.services[0], barrier.GroupConfig{Members: barrier.MaskOf(0, 1)}), schedule.Auto().For(2).String()},
	} {
		if got := c.got.Algorithm().String(); got != c.want {
			t.Errorf("%d members: %s, want %s", c.got.Size(), got, c.want)
		}
	}
	stages(t, tuned, 3, func(int, int) {})
	expectNone(t, each(tuned[:3], func(_ int, g *barrier.Group) error {
		return g.BarrierWith(limit(t), barrier.Options{Members: barrier.MaskOf(0, 1, 2)})
	}))
	if err := n.services[4].Close(); err != nil {
		t.Fatal(err)
	}
	n.services[4] = service(t, n.eps[4], barrier.Config{Table: table("shuffle")})
	for _, err := range each(n.groups(t, barrier.GroupConfig{ID: 7}), func(_ int, g *barrier.Group) error {
		return g.Barrier(limit(t))
	}) {
		if !errors.Is(err, barrier.ErrMismatch) {
			t.Errorf("%v, want a mismatch", err)
		}
	}
}
