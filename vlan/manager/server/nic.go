package server

import (
	"fmt"
	"net"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// nicOf asks the system about an interface. Without a name only the address is known.
func nicOf(name string, mac transport.MAC) (api.NIC, error) {
	n := api.NIC{Schema: api.Schema, Interface: name, MAC: mac}
	if name == "" {
		return n, nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return n, err
	}
	if hw, err := transport.MACFrom(i.HardwareAddr); err == nil && hw != mac {
		return n, fmt.Errorf("has address %v now, and this manager is %v's (restart it)", hw, mac)
	}
	n.MTU, n.Up, n.Carrier = i.MTU, i.Flags&net.FlagUp != 0, i.Flags&net.FlagRunning != 0
	n.Driver, n.SpeedMbps = askDriver(name)
	return n, nil
}
