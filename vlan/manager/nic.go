package manager

import (
	"fmt"
	"net"

	"github.com/rawlane/rawlane/transport"
)

// NIC is a manager's answer about its node's network interface.
type NIC struct {
	Schema    int           `json:"schema"`
	Interface string        `json:"interface"`
	MAC       transport.MAC `json:"mac"`
	MTU       int           `json:"mtu,omitempty"`
	Driver    string        `json:"driver,omitempty"`     // empty: the system does not tell
	SpeedMbps int           `json:"speed_mbps,omitempty"` // 0: the driver does not tell
	Up        bool          `json:"up"`                   // it was set up
	Carrier   bool          `json:"carrier"`              // and hears the other end of its cable
}

// nicOf asks the system about an interface. Without a name only the address is known.
func nicOf(name string, mac transport.MAC) (NIC, error) {
	n := NIC{Schema: Schema, Interface: name, MAC: mac}
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
