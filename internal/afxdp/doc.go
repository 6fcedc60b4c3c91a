// Package afxdp opens AF_XDP on a network interface: all that needs privilege. It loads the link's
// program and attaches it in the best mode that there is, makes a socket for each receive queue,
// has the NIC leave VLAN tags in the frames, and undoes it.
//
// Who uses the sockets need not be who opened them. Package xdp is the link that does both.
package afxdp

import (
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// Config says which frames the sockets get, and how.
type Config struct {
	EtherType   transport.EtherType
	MAC         transport.MAC // frames for this station, and for groups
	Promiscuous bool          // for others, too
	Mode        xsk.Mode
	Slots       int  // received frames that a socket holds: a power of two
	NoVLANs     bool // leave a NIC that takes tags off as it is
}
