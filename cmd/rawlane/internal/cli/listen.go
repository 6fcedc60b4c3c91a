package cli

import "net"

// CheckListen refuses what is no TCP address to listen on: the value of a flag, or "" without one.
func CheckListen(flag, address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return Misuse("--%s %q: want HOST:PORT, with a port of 0 to 65535 or the name of one", flag, address)
	}
	return nil
}
