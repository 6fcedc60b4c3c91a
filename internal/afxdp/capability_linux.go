package afxdp

import "golang.org/x/sys/unix"

// HasCapability reports whether the calling thread has a capability, by its number (unix.CAP_...).
func HasCapability(number int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // 32 capabilities each
	return unix.Capget(&head, &data[0]) == nil && data[number/32].Effective>>(number%32)&1 != 0
}
