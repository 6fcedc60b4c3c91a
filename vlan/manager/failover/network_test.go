package failover_test

import (
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(mainOf{m})
}

// mainOf runs the tests as testbed.Main does, where kernel links need it.
type mainOf struct{ m *testing.M }

func (r mainOf) Run() int { return testbed.Main(r.m) }

// network is nodes 0 and 1 on leaf 0, 2 and 3 on leaf 1, or other numbers of them, and a top for
// VID 1 and one for VIDs 2 and 3, all in memory.
type network struct {
	first  int                 // nodes on leaf 0
	cables [2][2]*fabric.Cable // by leaf and top
	eps    []*mcd.Endpoint
	tables []*vlan.Table
	moves  moves

	defaults moves // of default routes
}

// moves collects what drivers tell.
type moves struct {
	mu  sync.Mutex
	all []failover.Move
}

func (m *moves) add(v failover.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, v)
}

func (m *moves) take() (all []failover.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, m.all = m.all, nil
	return all
}

// newNetwork makes one. The nodes' links are wrapped, if there is a function that does it.
func newNetwork(t *testing.T, wrap ...func(transport.Link) transport.Link) *network {
	t.Helper()
	return newNetworkOf(t, 2, 2, wrap...)
}

// newNetworkOf is newNetwork for so many nodes on leaf 0, and on leaf 1.
func newNetworkOf(t *testing.T, first, second int, wrap ...func(transport.Link) transport.Link) *network {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{first: first}
	leaves := []*fabric.Switch{f.AddSwitch("leaf 0"), f.AddSwitch("leaf 1")}
	for top, trunk := range []fabric.Port{fabric.Trunk(1), fabric.Trunk(2, 3)} {
		sw := f.AddSwitch(fmt.Sprintf("top %d", top+1))
		for leaf := range leaves {
			if n.cables[leaf][top], err = f.Connect(leaves[leaf], sw, trunk); err != nil {
				t.Fatal(err)
			}
		}
	}
	var links []transport.Link
	var nodes []mcd.Node
	for k := range first + second {
		attached, err := f.Attach(leaves[n.leaf(k)], fabric.Station{})
		if err != nil {
			t.Fatal(err)
		}
		var l transport.Link = attached
		for _, w := range wrap {
			l = w(l)
		}
		links = append(links, l)
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
	}
	for k, l := range links {
		table, err := vlan.NewTable([]vlan.Route{{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1, PCP: 2})}})
		if err != nil {
			t.Fatal(err)
		}
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Router: table, Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ep.Close() })
		n.eps, n.tables = append(n.eps, ep), append(n.tables, table)
	}
	return n
}

// leaf is that of a node.
func (n *network) leaf(k int) int {
	if k < n.first {
		return 0
	}
	return 1
}

// watch has all nodes' paths be watched.
func (n *network) watch(t *testing.T) (ds []*failover.Driver) {
	t.Helper()
	for k, ep := range n.eps {
		d, err := failover.Start(ep, failover.Config{Failover: watched, Routes: failover.Table(n.tables[k]), Drain: true,
			OnMove: n.moves.add, OnDefault: n.defaults.add})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		ds = append(ds, d)
	}
	return ds
}

func (n *network) vid(from, to int) transport.VID {
	tag := n.tables[from].Route(n.eps[to].MAC(0)).Tag
	return tag.VID
}

// expectVIDs checks which VID the pairs between the leaves use, in both directions; those within a
// leaf use VID 1.
func (n *network) expectVIDs(t *testing.T, between transport.VID) {
	t.Helper()
	for a := range n.eps {
		for b := range n.eps {
			want := between
			if n.leaf(a) == n.leaf(b) {
				want = 1
			}
			if a != b && n.vid(a, b) != want {
				t.Errorf("%d sends to %d by VID %d, want VID %d", a, b, n.vid(a, b), want)
			}
		}
	}
}
