package launch

import (
	"fmt"
	"net"
	"strings"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// candidate is a network interface for a link.
type candidate struct {
	name   string
	reason string // why it will not do; "" if it does
	about  string
}

// candidates lists this machine's interfaces, and the reason where one will not do.
func candidates() ([]candidate, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	var list []candidate
	for _, i := range all {
		c := candidate{name: i.Name, about: fmt.Sprintf("%v, MTU %d", i.HardwareAddr, i.MTU)}
		if d := driverOf(i.Name); d != "" {
			c.about += ", " + d
		}
		switch {
		case i.Flags&net.FlagLoopback != 0:
			c.reason = "the loopback has no Ethernet behind it"
		case len(i.HardwareAddr) != 6:
			c.reason = "no Ethernet address"
		case i.Flags&net.FlagUp == 0:
			c.reason = "down (ip link set " + i.Name + " up)"
		case i.Flags&net.FlagRunning == 0:
			c.reason = "no carrier (is its cable in?)"
		}
		list = append(list, c)
	}
	return list, nil
}

// ChooseInterface returns the interface that will do, if there is exactly one. Otherwise the error
// lists all: a guess could wait for the other nodes on the wrong network.
func ChooseInterface() (string, error) {
	list, err := candidates()
	if err != nil {
		return "", err
	}
	var usable []string
	var lines strings.Builder
	for _, c := range list {
		if c.reason == "" {
			usable = append(usable, c.name)
			fmt.Fprintf(&lines, "\n  %-12s %s", c.name, c.about)
		} else {
			fmt.Fprintf(&lines, "\n  %-12s not usable: %s", c.name, c.reason)
		}
	}
	switch len(usable) {
	case 1:
		return usable[0], nil
	case 0:
		return "", fmt.Errorf("no network interface will do:%s", &lines)
	}
	return "", cli.Misuse("which network interface? Give --interface, one of %s:%s", strings.Join(usable, ", "), &lines)
}

// NICFacts are the settings of a NIC by its driver; zero where the driver does not tell.
type NICFacts struct {
	Driver         string `json:"driver"`
	SpeedMbps      int    `json:"speed_mbps,omitempty"`
	Queues         int    `json:"queues,omitempty"`
	RxCoalesceUsec int    `json:"rx_coalesce_us"`
	AdaptiveRx     bool   `json:"adaptive_rx"`
	VLANFilter     bool   `json:"vlan_filter"`
	VLANStrip      bool   `json:"vlan_strip"`
}
