package server

import (
	"github.com/safchain/ethtool"

	"github.com/rawlane/rawlane/internal/room"
)

// unknownSpeed is the answer of a driver without one.
const unknownSpeed = 1<<32 - 1

// askDriver asks a NIC's driver for its name and speed. Drivers need not know either.
func askDriver(name string) (driver string, speedMbps int) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return "", 0
	}
	defer e.Close()
	room.GrowStack()
	driver, _ = e.DriverName(name)
	room.GrowStack()
	if speed, err := e.CmdGet(&ethtool.EthtoolCmd{}, name); err == nil && speed != unknownSpeed {
		speedMbps = int(speed)
	}
	return driver, speedMbps
}
