// Package grant gets packet sockets from a service, for programs that may not open them.
//
// Opening a packet socket needs CAP_NET_RAW; using one needs nothing. The service, `rawlane grant`,
// has the capability. It opens sockets and hands them over its Unix socket to the programs of users
// that its file of rules names (docs/without-root.md):
//
//	program, uid 1000                               rawlane grant, CAP_NET_RAW
//	Open(Request) ----------- eth0 ---------------> rules: may uid 1000 use eth0?
//	                                                socket, filter, lock the filter, ring, bind
//	ring.Open <---- two descriptors (SCM_RIGHTS) -- journal: uid, pid, eth0, clusters, ports
//
//	                                                for link xdp: load the XDP program, attach it,
//	xdp.Open <----- sockets and their memory ------ open, bind and enter a socket for each queue
//
// What such a socket receives is fixed: of one interface and EtherType, messages to this station or
// a group, of the clusters and to the ports that the rules give to the user. The filter is locked
// (SO_LOCK_FILTER); its owner cannot change it, and nor can root. What a program sends is not
// restricted by the socket: see the page.
//
// A program need not know of this package: ring.Open, packet.Open and xdp.Open ask the service by
// themselves where the system refuses them a socket. Frames go the same way as ever, between the
// program and the kernel; the service has no part in them, and links outlive it.
package grant

import (
	"os"

	"github.com/rawlane/rawlane/transport"
)

// DefaultSocket is the usual socket of the service.
const DefaultSocket = "/run/rawlane-grant/socket"

// EnvSocket is the environment variable with another socket of the service.
const EnvSocket = "RAWLANE_GRANT"

// Socket returns the service's socket for this process: that of EnvSocket, or DefaultSocket.
func Socket() string {
	if path := os.Getenv(EnvSocket); path != "" {
		return path
	}
	return DefaultSocket
}

// Request says which sockets a program wants.
type Request struct {
	// Interface is the name of the network interface, in the service's network namespace.
	Interface string
	// EtherType of the frames to receive. 0 means transport.EtherTypeDefault.
	EtherType transport.EtherType
	// Ring is for package ring, and XDP for package xdp; without them the grant is for package
	// packet.
	Ring, XDP bool
	// Slots is how many received frames the ring holds, or each receive queue with XDP: rounded up
	// as ring.Config and xdp.Config say, and 0 is what it is there.
	Slots int
	// Mode and NoVLANs are those of xdp.Config, for XDP: Mode is a name such as xdp.Mode's String
	// returns, and "" is auto.
	Mode    string
	NoVLANs bool
	// Cluster narrows what is received to one cluster. Nil means all that the rules allow.
	Cluster *uint32
}
