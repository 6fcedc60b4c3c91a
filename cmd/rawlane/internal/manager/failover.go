package manager

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/vlan/control"
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
)

// guard watches the paths of a manager's plan, by an endpoint of its own, and has the manager avoid
// those that carry no frames.
type guard struct {
	server *server.Server
	ifname string
	self   transport.MAC
	log    *slog.Logger

	plan   *plan.Plan // that is watched, or nil
	ep     *mcd.Endpoint
	driver *failover.Driver
}

// run watches until the context ends. A plan that cannot be watched, as while the interface is
// down, is tried again: the manager does its other work all the same.
func (g *guard) run(ctx context.Context) {
	defer g.stop()
	pause := guardInterval
	for {
		next := guardInterval
		if p := g.server.Plan(); p != nil && !sameNetwork(p, g.plan) {
			g.release()
			if err := g.watch(p); err != nil {
				g.log.Error("failover cannot watch the plan", "err", err, "again in", pause)
				next, pause = pause, min(2*pause, guardRetryMax)
			} else {
				pause = guardInterval
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// sameNetwork reports whether two plans are of the same nodes, in the same order, and the same
// VIDs: then the same paths are watched.
func sameNetwork(a, b *plan.Plan) bool {
	return b != nil && slices.Equal(a.VIDs, b.VIDs) &&
		slices.EqualFunc(a.Nodes, b.Nodes, func(x, y plan.Node) bool { return x.MAC == y.MAC })
}

// watch begins to watch a plan's paths.
func (g *guard) watch(p *plan.Plan) error {
	node, ok := p.NodeOf(g.self)
	if !ok || len(p.VIDs) < 2 {
		g.plan = p // there is nothing to move
		g.log.Warn("failover has nothing to choose from", "listed", ok, "vids", len(p.VIDs))
		return nil
	}
	var nodes []mcd.Node
	for k, s := range p.Nodes {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{s.MAC}})
	}
	link, err := ring.Open(g.ifname, ring.Config{EtherType: guardEtherType})
	if err != nil {
		return err
	}
	ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(node), Nodes: nodes, EtherType: guardEtherType}, link)
	if err != nil {
		_ = link.Close() // the first error is the one to report
		return err
	}
	d, err := failover.Start(ep, failover.Config{
		Failover: control.FailoverConfig{VIDs: p.VIDs},
		Routes:   failover.Manager(g.server, g.self),
		PCP:      p.PCP,
		OnMove:   func(m failover.Move) { g.log.Warn("failover", "move", m.String(), "peer", m.Peer.String()) },
	})
	if err != nil {
		_ = ep.Close() // likewise
		return err
	}
	g.plan, g.ep, g.driver = p, ep, d
	g.log.Info("failover watches", "nodes", len(p.Nodes), "vids", len(p.VIDs))
	return nil
}

// release ends the watch, and its overrides: the next one begins with the preferred routes.
func (g *guard) release() {
	d := g.driver
	g.stop()
	if d != nil {
		_ = d.Restore() // the manager's routes can always be restored
	}
}

// stop ends the watch. Its overrides stay until the manager ends.
func (g *guard) stop() {
	if g.driver != nil {
		_ = g.driver.Close() // nothing depends on it any more
		_ = g.ep.Close()
	}
	g.plan, g.ep, g.driver = nil, nil, nil
}
