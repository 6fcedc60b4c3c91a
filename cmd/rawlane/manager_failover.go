package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/failover"
	"github.com/rawlane/rawlane/vlan/manager"
)

// managerCluster is the cluster of the managers' own endpoints, whose probes are none of the programs'.
const managerCluster mcd.ClusterID = 0xfa170e55

// lookForPlan is how often the watch looks whether the plan has other nodes or VIDs: until then it probes those of before.
const lookForPlan = time.Second

// pathWatch has a manager leave paths that carry nothing: it probes the other nodes' managers by all of the plan's VIDs.
type pathWatch struct {
	server *manager.Server
	nic    string
	log    *slog.Logger

	plan   *vlan.Plan // whose paths are watched; nil: none
	ep     *mcd.Endpoint
	driver *failover.Driver
}

// run watches until the context ends. The error is of what keeps it from beginning: the interface, or a privilege.
func (w *pathWatch) run(ctx context.Context) error {
	tick := time.NewTicker(lookForPlan)
	defer tick.Stop()
	for {
		if plan := w.server.Plan(); plan != nil && (w.plan == nil || !samePaths(plan, w.plan)) {
			if err := errors.Join(w.end(), w.begin(plan)); err != nil {
				return errors.Join(fmt.Errorf("failover: %w", err), w.end())
			}
		}
		select {
		case <-ctx.Done():
			return w.end()
		case <-tick.C:
		}
	}
}

// samePaths reports whether two plans have the same nodes to probe, by the same VIDs.
func samePaths(a, b *vlan.Plan) bool {
	return a.PCP == b.PCP && slices.Equal(a.VIDs, b.VIDs) &&
		slices.EqualFunc(a.Nodes, b.Nodes, func(x, y vlan.Station) bool { return x.MAC == y.MAC })
}

// begin opens an endpoint among the managers, and watches the paths to the others.
func (w *pathWatch) begin(plan *vlan.Plan) error {
	w.plan = plan
	if len(plan.VIDs) < 2 || len(plan.Nodes) < 2 {
		w.log.Info("failover: nothing to choose between", "nodes", len(plan.Nodes), "vids", len(plan.VIDs))
		return nil
	}
	link, err := packet.Open(w.nic, packet.Config{})
	if err != nil {
		return err
	}
	cfg := mcd.Config{Cluster: managerCluster, Spin: -1}
	for k, s := range plan.Nodes {
		cfg.Nodes = append(cfg.Nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{s.MAC}})
		if s.MAC == link.MAC() {
			cfg.Node = mcd.NodeID(k)
		}
	}
	if w.ep, err = mcd.Open(cfg, link); err != nil {
		return errors.Join(err, link.Close())
	}
	w.driver, err = failover.Start(w.ep, failover.Config{
		Failover: vlan.FailoverConfig{VIDs: plan.VIDs}, Routes: failover.Manager(w.server, link.MAC()), PCP: plan.PCP,
		OnMove: func(m failover.Move) { w.log.Warn("failover", "move", m.String()) },
	})
	if err == nil {
		w.log.Info("failover: watching", "nodes", len(plan.Nodes)-1, "vids", len(plan.VIDs))
	}
	return err
}

// end closes the watch, and takes back what it has forced: who begins anew has to find out anew.
func (w *pathWatch) end() error {
	var errs []error
	if w.driver != nil {
		errs = append(errs, w.driver.Close())
		var peers []transport.MAC
		for _, s := range w.plan.Nodes {
			peers = append(peers, s.MAC)
		}
		w.server.Unforce("the watch ends", peers...)
	}
	if w.ep != nil {
		errs = append(errs, w.ep.Close())
	}
	w.driver, w.ep, w.plan = nil, nil, nil
	return errors.Join(errs...)
}
