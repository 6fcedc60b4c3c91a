//go:build !linux

package manager

func askDriver(string) (driver string, speedMbps int) { return "", 0 }
