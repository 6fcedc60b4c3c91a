package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/failover"
	"github.com/rawlane/rawlane/vlan/manager"
)

// managersCluster is the cluster of the managers, whose endpoints probe the paths of their nodes: "RMGR". Programs' clusters are others.
const managersCluster mcd.ClusterID = 0x524d4752

// planLook is how often a manager's plan is looked at, of which the nodes and VIDs to watch are taken.
const planLook = time.Second

// pathWatch watches the paths between the nodes of a manager's plan, and has the manager move pairs. A node's number is its place in
// the plan, which is the same at all managers.
type pathWatch struct {
	server *manager.Server
	self   transport.MAC
	open   func() (transport.Link, error)
	cfg    vlan.FailoverConfig // but for the VIDs
	log    *slog.Logger
	cancel context.CancelFunc
	ended  sync.WaitGroup // the goroutine that newPathWatch started

	// What follows belongs to that goroutine.
	plan   *vlan.Plan
	ep     *mcd.Endpoint
	driver *failover.Driver
	failed string // what was told last of why it cannot watch
}

func newPathWatch(s *manager.Server, self transport.MAC, open func() (transport.Link, error), cfg vlan.FailoverConfig, log *slog.Logger) *pathWatch {
	w := &pathWatch{server: s, self: self, open: open, cfg: cfg, log: log}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.ended.Go(func() { w.run(ctx) }) // until close, which waits for it
	return w
}

func (w *pathWatch) close() {
	w.cancel()
	w.ended.Wait()
}

func (w *pathWatch) run(ctx context.Context) {
	look := time.NewTicker(planLook)
	defer look.Stop()
	defer w.stop()
	for {
		w.follow(w.server.Plan())
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// follow watches what a plan says, if it is another one than before. What cannot be had is told of once, and tried again.
func (w *pathWatch) follow(p *vlan.Plan) {
	if p == w.plan && w.failed == "" {
		return
	}
	err := w.watch(p)
	w.plan = p
	switch {
	case err == nil:
		w.failed = ""
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.log.Error("cannot watch the paths; will try again", "err", err)
	}
}

func (w *pathWatch) watch(p *vlan.Plan) error {
	if p == nil {
		w.stop()
		return nil
	}
	node, listed := p.NodeOf(w.self)
	if !listed {
		w.stop()
		return fmt.Errorf("the plan does not list this node, %v", w.self)
	}
	var nodes []mcd.Node
	for k, n := range p.Nodes {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{n.MAC}})
	}
	if w.ep != nil && int(w.ep.Node()) == node && slices.Equal(w.plan.VIDs, p.VIDs) {
		return w.ep.SetNodes(nodes)
	}
	w.stop()
	link, err := w.open()
	if err != nil {
		return err
	}
	if w.ep, err = mcd.Open(mcd.Config{Cluster: managersCluster, Node: mcd.NodeID(node), Nodes: nodes, Spin: -1}, link); err != nil {
		return errors.Join(err, link.Close())
	}
	cfg := w.cfg
	cfg.VIDs = p.VIDs
	w.driver, err = failover.Start(w.ep, failover.Config{
		Failover: cfg, Routes: failover.Manager(w.server, w.self), PCP: p.PCP,
		OnMove: func(m failover.Move) {
			w.log.Warn("failover", "node", p.Nodes[m.Node].Name, "from", m.From, "to", m.To, "reason", m.Reason.String(), "err", m.Err)
		},
	})
	if err != nil {
		w.stop()
		return err
	}
	w.log.Info("watching the paths", "nodes", len(nodes)-1, "vids", p.VIDs)
	return nil
}

// stop watches no longer.
func (w *pathWatch) stop() {
	if w.driver != nil {
		_ = w.driver.Close() // it has no error
	}
	if w.ep != nil {
		_ = w.ep.Close() // nothing was lost
	}
	w.ep, w.driver = nil, nil
}
