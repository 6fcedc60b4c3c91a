package l2switch

import (
	"time"

	"github.com/rawlane/rawlane/transport"
)

const (
	// DefaultAgeing is how long an address is kept that sends nothing.
	// Source: IEEE 802.1Q §8.8.3, recommended value.
	DefaultAgeing = 300 * time.Second

	// NeverAge, as Config.Ageing, keeps addresses until they move, their port goes down or Flush.
	NeverAge time.Duration = -1

	// DefaultAddresses bounds the table of a switch: as many as a common 1 Gb/s switch holds.
	// Full, the table takes at most 2 x 24 bytes for each.
	DefaultAddresses = 8192

	// DefaultPVID is the VLAN of untagged frames on a port that names none. Source: IEEE 802.1Q
	// §9.6, table 9-2.
	DefaultPVID transport.VID = 1

	// MaxPorts bounds a switch or hub: more than any that is sold.
	MaxPorts = 4096

	// firstSlots is a table's first size: most switches in tests learn a handful of addresses.
	firstSlots = 64
)
