package failover

import (
	"maps"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
)

// moveDefault has the default route, by which frames to groups and to all go, lead by the VID that
// reaches most peers: see control.Failover.Default. Messages to groups and to all are not drained.
// The caller holds mu.
func (d *Driver) moveDefault(now monotime.Time) {
	inForce, preferred := d.cfg.Routes.VIDs(transport.Broadcast)
	if !slices.Contains(d.cfg.Failover.VIDs, preferred) {
		if inForce != preferred { // by this driver, or an earlier one
			d.giveUp(transport.Broadcast)
		}
		return
	}
	to := d.core.Default(preferred, inForce)
	if to == inForce || to == preferred && now.Before(d.defaultHeld) {
		return
	}
	m := Move{Peer: transport.Broadcast, From: inForce, To: to, Reason: control.MoveMissed}
	if to == preferred {
		m.Reason = control.MoveHeld
		m.Err = d.cfg.Routes.Restore(transport.Broadcast, m.Reason.String())
	} else {
		m.Err = d.overrideDefault(&m)
	}
	if d.cfg.OnDefault != nil {
		d.cfg.OnDefault(m)
	}
}

// overrideDefault puts a default route over the preferred one. The caller holds mu.
func (d *Driver) overrideDefault(m *Move) error {
	if t, ok := d.cfg.Routes.(*tableRoutes); ok {
		if err := t.pin(slices.Collect(maps.Keys(d.peers))); err != nil {
			return err
		}
	}
	return d.cfg.Routes.Override(transport.Broadcast, m.To, m.Reason.String())
}
