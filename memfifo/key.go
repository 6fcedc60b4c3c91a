package memfifo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/mcd"
)

// Key is what one needs to use a window or a FIFO: where it is, and a random number that its owner
// has given it. It is comparable, and may be sent to other nodes in any way, as text for instance.
type Key struct {
	Node   mcd.NodeID
	ID     uint16
	Secret uint64
}

// String formats k as "node/id/secret", which ParseKey takes.
func (k Key) String() string { return fmt.Sprintf("%d/%d/%016x", k.Node, k.ID, k.Secret) }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(b []byte) (err error) {
	*k, err = ParseKey(string(b))
	return err
}

// ParseKey reads what String writes.
func ParseKey(s string) (Key, error) {
	fields := strings.Split(s, "/")
	if len(fields) == 3 {
		node, err1 := strconv.ParseUint(fields[0], 10, 16)
		id, err2 := strconv.ParseUint(fields[1], 10, 16)
		secret, err3 := strconv.ParseUint(fields[2], 16, 64)
		if err1 == nil && err2 == nil && err3 == nil && node <= uint64(mcd.MaxNodeID) {
			return Key{mcd.NodeID(node), uint16(id), secret}, nil
		}
	}
	return Key{}, fmt.Errorf("key %q: want node/id/secret, for example 3/1/00c0ffee12345678", s)
}
