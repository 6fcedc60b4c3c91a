package server

import "github.com/rawlane/rawlane/internal/room"

// askDriver asks a NIC's driver for its name and speed. Drivers need not know either.
func askDriver(name string) (driver string, speedMbps int) {
	e, err := room.NewEthtool()
	if err != nil {
		return "", 0
	}
	defer e.Close()
	driver, _ = e.DriverName(name)
	return driver, e.Speed(name)
}
