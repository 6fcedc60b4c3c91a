package diagnose

import (
	"fmt"
	"slices"
)

// modes are the values of rx-usecs that are no microseconds: with these the driver chooses by the
// load.
var modes = map[string][]int{
	"e1000": {1, 3, 4}, "e1000e": {1, 3, 4}, "igb": {1, 3}, "igc": {1, 3}, "ixgbe": {1}, "ixgbevf": {1},
}

// coalescing looks for interrupts that the NIC holds back.
func (n *nicFinding) coalescing() []finding {
	if n.RxCoalesceUsec <= 0 && !n.AdaptiveRx {
		return nil
	}
	setting := fmt.Sprintf("rx-usecs %d, adaptive %v", n.RxCoalesceUsec, n.AdaptiveRx)
	gain := fmt.Sprintf("up to %d us for a message that comes alone", n.RxCoalesceUsec)
	cure := "sudo ethtool -C " + n.Name
	byLoad := slices.Contains(modes[n.Driver], n.RxCoalesceUsec)
	if byLoad {
		setting = fmt.Sprintf("rx-usecs %d, by which the driver %s chooses by the load", n.RxCoalesceUsec, n.Driver)
	}
	if byLoad || n.AdaptiveRx {
		gain = "what the NIC's driver chooses by the load, some 10 to 50 us for a message that comes alone"
	}
	if n.AdaptiveRx { // a driver that has no such setting is asked for nothing, then
		cure += " adaptive-rx off"
	}
	return []finding{{
		Name: "coalescing",
		Reason: fmt.Sprintf("interrupts are held back (%s): "+
			"so is each message, whether its receiver sleeps or spins on a link of the kernel", setting),
		Gain: gain + "; more interrupts a second under load",
		Cure: cure + " rx-usecs 0",
	}}
}
