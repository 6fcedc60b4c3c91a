package manager

import (
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"log/slog"
	"slices"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

const (
	// guardEtherType is IEEE 802 local experimental 2: a guard's probes are not programs' frames.
	// If they were, each frame of a program would be copied to the guard's ring, too.
	guardEtherType = transport.EtherTypeDefault + 1
	// guardInterval is how often a guard looks whether its manager's plan has other nodes or VIDs.
	guardInterval = 500 * time.Millisecond
	// guardRetryMax bounds the pause before a guard that cannot watch a plan tries again.
	guardRetryMax = 30 * time.Second
	// guardNumbers is how many numbers guards have: those that mcd has.
	guardNumbers = uint32(mcd.MaxNodeID) + 1
)

// guard watches the paths of a manager's plan, by an endpoint of its own, and has the manager avoid
// those that carry no frames.
type guard struct {
	server  *server.Server
	ifname  string
	keyFile string
	self    transport.MAC
	log     *slog.Logger
	pause   time.Duration // before the next try
}

// run watches until the context ends. A plan that cannot be watched, as while the interface is down
// or was removed, is tried again: the manager does its other work all the same.
func (g *guard) run(ctx context.Context) {
	g.pause = guardInterval
	for ctx.Err() == nil {
		p := g.server.Plan()
		if p == nil {
			g.server.ShowFailover(nil)
			_ = cli.Pause(ctx, guardInterval) // the loop looks at ctx
			continue
		}
		err := g.watch(ctx, p)
		if err == nil {
			continue
		}
		g.log.Error("failover cannot watch the plan", "err", err, "again in", g.pause)
		g.server.ShowFailover(func() api.Failover { return api.Failover{Error: err.Error()} })
		g.awaitOtherFor(ctx, p, g.pause)
		g.pause = min(2*g.pause, guardRetryMax)
	}
}

// awaitOtherFor is awaitOther for some time at most.
func (g *guard) awaitOtherFor(ctx context.Context, p *plan.Plan, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = g.awaitOther(ctx, p, nil)
}

// awaitOther waits until the manager's plan is of another network than p, or gone, or the context
// ends, or look, if there is one, returns an error, which is told of each plan until then.
func (g *guard) awaitOther(ctx context.Context, p *plan.Plan, look func(now *plan.Plan) error) error {
	for ctx.Err() == nil {
		now := g.server.Plan()
		if now == nil || !sameNetwork(now, p) {
			return nil
		}
		if look != nil {
			if err := look(now); err != nil {
				return err
			}
		}
		_ = cli.Pause(ctx, guardInterval) // the loop looks at ctx
	}
	return nil
}

// sameNetwork reports whether two plans are of the same nodes, in any order, and the same VIDs:
// then the same paths are watched.
func sameNetwork(a, b *plan.Plan) bool {
	return slices.Equal(a.VIDs, b.VIDs) && slices.Equal(macsOf(a), macsOf(b))
}

// macsOf returns the addresses of a plan's nodes, sorted.
func macsOf(p *plan.Plan) []transport.MAC {
	macs := make([]transport.MAC, len(p.Nodes))
	for k, n := range p.Nodes {
		macs[k] = n.MAC
	}
	slices.SortFunc(macs, transport.MAC.Compare)
	return macs
}

// watch watches a plan's paths until the manager has a plan of another network, or none. Its
// overrides stay until the next watch takes them up, but for those of pairs to which that plan
// gives another VID: it is in force at once.
func (g *guard) watch(ctx context.Context, p *plan.Plan) error {
	node, ok := p.NodeOf(g.self)
	if !ok || len(p.VIDs) < 2 {
		g.log.Warn("failover has nothing to choose from", "listed", ok, "vids", len(p.VIDs))
		g.server.ShowFailover(nil) // an error was that of the plan before
		g.pause = guardInterval
		return g.awaitOther(ctx, p, nil)
	}
	nodes := nodesOf(p)
	link, err := ring.Open(g.ifname, ring.Config{EtherType: guardEtherType})
	if err != nil {
		return err
	}
	cfg := mcd.Config{Node: nodes[node].ID, Nodes: nodes, EtherType: guardEtherType, KeyFile: g.keyFile}
	ep, err := mcd.Open(cfg, link)
	if err != nil {
		_ = link.Close() // the first error is the one to report
		return err
	}
	vids := g.watched(p)
	d, err := failover.Start(ep, failover.Config{
		Failover: control.FailoverConfig{VIDs: vids},
		Routes:   failover.Manager(g.server, g.self),
		PCP:      p.PCP,
		OnPaths:  func(changed []failover.Path) { g.tell(p, changed) },
		OnMove:   g.tellMove, OnDefault: g.tellMove,
	})
	if err != nil {
		_ = ep.Close() // likewise
		return err
	}
	g.log.Info("failover watches", "nodes", len(p.Nodes), "vids", len(vids))
	g.pause = guardInterval
	err = g.awaitOther(ctx, p, func(now *plan.Plan) error {
		if err := ep.LinkErr(0); errors.Is(err, transport.ErrNoInterface) {
			return err
		}
		return d.SetPCP(now.PCP) // a plan may change nothing else
	})
	_ = d.Close() // nothing depends on it any more
	_ = ep.Close()
	if err == nil && ctx.Err() == nil {
		g.restoreReplanned(p, node)
	}
	return err
}

// nodesOf returns the nodes of a plan, in its order, as guards number them: by their addresses, so
// that guards whose plans list other nodes, or in another order, as while a change is under way,
// know the same ones by the same numbers. A node whose number one with a lower address has has the
// next that is free: such nodes alone depend on what else is listed.
func nodesOf(p *plan.Plan) []mcd.Node {
	nodes := make([]mcd.Node, len(p.Nodes))
	byMAC := make([]*mcd.Node, len(nodes))
	for k, n := range p.Nodes {
		nodes[k].MACs = []transport.MAC{n.MAC}
		byMAC[k] = &nodes[k]
	}
	slices.SortFunc(byMAC, func(a, b *mcd.Node) int { return a.MACs[0].Compare(b.MACs[0]) })
	taken := make(map[mcd.NodeID]bool, len(nodes))
	for _, n := range byMAC {
		id := crc32.ChecksumIEEE(n.MACs[0][:]) % guardNumbers
		for taken[mcd.NodeID(id)] {
			id = (id + 1) % guardNumbers
		}
		n.ID = mcd.NodeID(id)
		taken[n.ID] = true
	}
	return nodes
}

// restoreReplanned removes the overrides of pairs, and of the default route, whose VID is not that
// of a plan, in which this is a node, any more.
func (g *guard) restoreReplanned(p *plan.Plan, node int) {
	for k, n := range p.Nodes {
		if _, now := g.server.VIDs(n.MAC); k != node && now != p.PairVID(node, k) {
			g.server.Restore("another plan", n.MAC)
		}
	}
	if _, now := g.server.VIDs(transport.Broadcast); now != p.Nodes[node].VID {
		g.server.Restore("another plan", transport.Broadcast)
	}
}

// watched returns the VIDs of a plan that are watched: all, or of more than a failover can watch
// the first ones, on all nodes the same. Pairs on other VIDs are left alone.
func (g *guard) watched(p *plan.Plan) []transport.VID {
	n := min(len(p.VIDs), control.MaxFailoverVIDs)
	if n < len(p.VIDs) {
		g.log.Warn("failover watches the first of the plan's VIDs alone; pairs on others are not moved",
			"watched", n, "vids", len(p.VIDs))
	}
	return p.VIDs[:n]
}

// tellMove logs a move, with the node's number in the plan.
func (g *guard) tellMove(m failover.Move) {
	if p := g.server.Plan(); p != nil {
		if k, ok := p.NodeOf(m.Peer); ok {
			m.Node = mcd.NodeID(k)
		}
	}
	g.log.Warn("failover", "move", m.String(), "peer", m.Peer.String())
}

// maxToldPaths bounds the log's entries about paths that change their states at once, as all do
// when the node's own cable is cut.
const maxToldPaths = 16

// tell logs paths that have gone down or are up again.
func (g *guard) tell(p *plan.Plan, changed []failover.Path) {
	for i, path := range changed {
		if i == maxToldPaths {
			g.log.Warn("more paths have changed (rawlane route status lists them)", "number", len(changed)-i)
			return
		}
		level, what := slog.LevelInfo, "a path is up again"
		switch path.State {
		case control.PathDown:
			level, what = slog.LevelWarn, "a path is down"
		case control.PathWaitToRestore:
			what = "a path answers again, and has to hold for a while"
		}
		name := ""
		if n, ok := p.NodeOf(path.Peer); ok {
			name = p.Nodes[n].Name
		}
		g.log.Log(context.Background(), level, what,
			"node", cmp.Or(name, path.Peer.String()), "peer", path.Peer.String(), "vid", path.VID, "used", path.Used)
	}
}
