package transport

import (
	"bytes"
	"fmt"
	"net"
)

// MAC is an Ethernet (EUI-48) address. It compares with ==, keys a map and cannot alias a receive
// buffer. The zero MAC is no valid address; it means "none" or "the link's own" where documented.
type MAC [6]byte

// Broadcast is the address of every station on the segment.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ParseMAC parses a six-byte address in any form that net.ParseMAC takes.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil {
		return MAC{}, fmt.Errorf("MAC %q: not an address (want six bytes such as 02:00:00:00:00:01)", s)
	}
	return MACFrom(hw)
}

// MACFrom converts an address of package net, which must be six bytes long.
func MACFrom(hw net.HardwareAddr) (MAC, error) {
	var m MAC
	if len(hw) != len(m) {
		return MAC{}, fmt.Errorf("MAC %q: %d bytes, want 6", hw, len(hw))
	}
	return MAC(hw), nil
}

// HardwareAddr returns a copy as an address of package net.
func (m MAC) HardwareAddr() net.HardwareAddr { return append(net.HardwareAddr(nil), m[:]...) }

// String formats m as 02:00:00:00:00:01.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Compare orders addresses as byte strings: -1, 0 or +1.
func (m MAC) Compare(o MAC) int { return bytes.Compare(m[:], o[:]) }

// IsZero reports whether m is the zero address.
func (m MAC) IsZero() bool { return m == MAC{} }

// IsMulticast reports whether m is a group address; Broadcast is one.
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// IsLocal reports whether m is locally administered, that is, not from a vendor's block.
func (m MAC) IsLocal() bool { return m[0]&2 != 0 }

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MAC) UnmarshalText(b []byte) error {
	v, err := ParseMAC(string(b))
	if err == nil {
		*m = v
	}
	return err
}
