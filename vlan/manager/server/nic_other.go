//go:build !linux

package server

func askDriver(string) (driver string, speedMbps int) { return "", 0 }
