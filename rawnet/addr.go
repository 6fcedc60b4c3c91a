package rawnet

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// MaxService is the longest name of a service, in bytes.
const MaxService = mux.MaxService

// Network is the name of the network in addresses and errors.
const Network = "rawlane"

// Addr is a service of a node: "3:echo". The end of a connection that has dialed has its number in
// place of a service's name. Addr is comparable.
type Addr struct {
	Node    mcd.NodeID
	Service string
}

var _ net.Addr = Addr{}

// Network returns "rawlane".
func (Addr) Network() string { return Network }

// String formats a as "node:service".
func (a Addr) String() string { return strconv.Itoa(int(a.Node)) + ":" + a.Service }

// checkNetwork takes the names that programs pass to Dial and Listen, so that those written for
// package net need not change.
func checkNetwork(network string, also ...string) error {
	if network == "" || network == Network {
		return nil
	}
	for _, name := range also {
		if network == name || network == name+"4" || network == name+"6" {
			return nil
		}
	}
	return net.UnknownNetworkError(network)
}

// resolve reads "node:service": the node is a number, or a name of Config.Names.
func (n *Net) resolve(address string) (Addr, error) {
	host, service, ok := strings.Cut(address, ":")
	if !ok || host == "" || service == "" {
		return Addr{}, &net.AddrError{Err: "want node:service, for example 3:echo", Addr: address}
	}
	if err := checkService(service); err != nil {
		return Addr{}, err
	}
	if node, known := n.cfg.Names[host]; known {
		return Addr{node, service}, nil
	}
	node, err := strconv.ParseUint(host, 10, 16)
	if err != nil || mcd.NodeID(node) > mcd.MaxNodeID {
		return Addr{}, &net.DNSError{
			Err: "unknown node (want a number, or a name of Config.Names)", Name: host, IsNotFound: true,
		}
	}
	return Addr{mcd.NodeID(node), service}, nil
}

// resolveOwn reads a service of this node: "echo", ":echo", or "node:echo" with this node's number
// or name.
func (n *Net) resolveOwn(address string) (Addr, error) {
	if service := strings.TrimPrefix(address, ":"); !strings.Contains(service, ":") {
		return Addr{n.ep.Node(), service}, checkService(service)
	}
	a, err := n.resolve(address)
	if err == nil && a.Node != n.ep.Node() {
		err = &net.AddrError{Err: fmt.Sprintf("not this node's, which is %d", n.ep.Node()), Addr: address}
	}
	return a, err
}

func checkService(service string) error {
	if len(service) == 0 || len(service) > MaxService {
		err := fmt.Sprintf("service of %d bytes (want 1 to %d)", len(service), MaxService)
		return &net.AddrError{Err: err, Addr: service}
	}
	return nil
}
