package failover

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
)

// Config of a Driver.
type Config struct {
	// Failover sets the watched VIDs and the timers: the same on all nodes.
	Failover control.FailoverConfig
	// Routes are what is changed: Table or Manager. Pairs that prefer none of the watched VIDs are
	// left alone.
	Routes Routes
	// NIC is the endpoint's link whose paths are watched.
	NIC int
	// PCP is the priority of the probes: see Driver.SetPCP.
	PCP transport.PCP
	// Drain puts a move off a VID that still carries frames, as when a pair goes back, behind a
	// drain of the endpoint, so that no message overtakes another. It is for tables that the
	// endpoint sends by.
	Drain bool
	// OnMove, if not nil, is called with each move of a pair. It must neither wait nor call the
	// Driver.
	OnMove func(Move)
	// OnDefault, if not nil, is called with each move of the default route, by which frames to
	// groups and to all go. It must neither wait nor call the Driver.
	OnDefault func(Move)
	// OnPaths, if not nil, is called with the paths that have gone down, that answer again
	// (WaitToRestore) or that are up again. It must neither wait nor call the Driver.
	OnPaths func([]Path)
}

// Move is a pair's move to another VID, or that of the default route, by which frames to groups and
// to all go.
type Move struct {
	Node     mcd.NodeID    // of a pair
	Peer     transport.MAC // transport.Broadcast: the default route
	From, To transport.VID
	Reason   control.MoveReason
	Drained  bool
	// Err is why the routes could not be changed, or the drain failed. After a failed drain they
	// were changed all the same.
	Err error
}

// String puts m on one line: "node 3: VID 1 -> VID 2: no answer". The default route is that to
// "groups and all".
func (m Move) String() string {
	who := fmt.Sprintf("node %d", m.Node)
	if m.Peer == transport.Broadcast {
		who = "groups and all"
	}
	s := fmt.Sprintf("%s: VID %d -> VID %d: %v", who, m.From, m.To, m.Reason)
	if m.Err != nil {
		s += fmt.Sprintf(" (%v)", m.Err)
	}
	return s
}

func (c *Config) validate(ep *mcd.Endpoint) error {
	if c.NIC < 0 || c.NIC >= ep.NICs() {
		return fmt.Errorf("failover: Config.NIC %d: the endpoint has %d", c.NIC, ep.NICs())
	}
	if c.Routes == nil {
		return errors.New("failover: Config.Routes is nil (want Table or Manager)")
	}
	return validatePCP(c.PCP)
}

func validatePCP(p transport.PCP) error {
	if err := (transport.Tag{PCP: p}).Validate(); err != nil {
		return fmt.Errorf("failover: PCP: %w", err)
	}
	return nil
}
