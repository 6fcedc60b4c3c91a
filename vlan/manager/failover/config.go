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
	// Failover says what is watched, and how closely: the same on all nodes.
	Failover control.FailoverConfig
	// Routes are what is changed, and tell which VID a pair prefers: the one that it uses while
	// nothing is forced. Pairs that use none of the watched VIDs are left alone.
	Routes Routes
	// NIC is the endpoint's link whose paths are watched.
	NIC int
	// PCP is the priority of the probes.
	PCP transport.PCP
	// Fence puts moves away from a VID that still carries frames, as when a pair is taken back,
	// behind a fence of the endpoint: so none of its messages overtakes another. It is for tables
	// that the endpoint sends by.
	Fence bool
	// OnMove, if not nil, is told of each move. It must not wait, and not call the Driver.
	OnMove func(Move)
}

// Move is a pair's move to another VID.
type Move struct {
	Node     mcd.NodeID
	Peer     transport.MAC
	From, To transport.VID
	Reason   control.MoveReason
	Fenced   bool
	Err      error // why the routes could not be changed, or the fence not be had; in the latter case they were changed
}

// String puts m on one line: "node 3: VID 1 -> VID 2: no answer".
func (m Move) String() string {
	s := fmt.Sprintf("node %d: VID %d -> VID %d: %v", m.Node, m.From, m.To, m.Reason)
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
	if err := (transport.Tag{PCP: c.PCP}).Validate(); err != nil {
		return fmt.Errorf("failover: Config.PCP: %w", err)
	}
	return nil
}
