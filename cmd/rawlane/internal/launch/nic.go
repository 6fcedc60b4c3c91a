package launch

import (
	"fmt"
	"net"
	"strings"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// unusable says why a network interface will not do for a link; "" if it does.
func unusable(i *net.Interface) string {
	switch {
	case i.Flags&net.FlagLoopback != 0:
		return "the loopback has no Ethernet behind it"
	case len(i.HardwareAddr) != 6:
		return "no Ethernet address"
	case i.Flags&net.FlagUp == 0:
		return "down (ip link set " + i.Name + " up)"
	case i.Flags&net.FlagRunning == 0:
		return "no carrier (is its cable in?)"
	}
	return ""
}

// ChooseInterface returns the interface that will do, if there is exactly one. Otherwise the error
// lists all: a guess could wait for the other nodes on the wrong network.
func ChooseInterface() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("list the network interfaces: %w", err)
	}
	var usable []string
	var lines strings.Builder
	for _, i := range all {
		if reason := unusable(&i); reason != "" {
			fmt.Fprintf(&lines, "\n  %-12s not usable: %s", i.Name, reason)
			continue
		}
		usable = append(usable, i.Name)
		fmt.Fprintf(&lines, "\n  %-12s %v, MTU %d", i.Name, i.HardwareAddr, i.MTU)
		if driver := AskDriver(i.Name).Driver; driver != "" {
			lines.WriteString(", " + driver)
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
	// Segments: the NIC cuts trains itself (tx-udp-segmentation); else the kernel does.
	Segments bool `json:"udp_segmentation"`
	// Joins: the kernel joins trains that arrive cut (rx-gro and rx-udp-gro-forwarding).
	Joins bool `json:"udp_gro_forwarding"`
}
