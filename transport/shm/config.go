package shm

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"syscall"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// Station is another link of the segment that is reached through memory.
type Station struct {
	MAC transport.MAC
	PID int // of its process; 0 if that is in a container of its own
}

// OpenNode is Open for a node of a cluster, on the segment that is its network. Its address is
// computed from the three: a node that begins anew has it again, and is met; and of two processes
// that are the same node the second is refused (syscall.EADDRINUSE).
func OpenNode(segment string, cluster uint32, node int, cfg Config) (*Link, error) {
	cfg.MAC = nodeMAC(segment, cluster, node)
	l, err := Open(segment, cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("node %d of cluster %d runs on this host already: %w", node, cluster, err)
	}
	return l, err
}

// nodeMAC returns a node's address: a locally administered one.
func nodeMAC(segment string, cluster uint32, node int) transport.MAC {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", segment, cluster, node))
	return local(transport.MAC(sum[:6]))
}

// local makes an address a locally administered one of a station.
func local(m transport.MAC) transport.MAC {
	m[0] = m[0]&^1 | 2
	return m
}

// segmentName is what names a folder, and leaves room for the rest of a socket's path.
var segmentName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,31}$`)

// CheckName says what is wrong with the name of a segment, if anything is.
func CheckName(segment string) error {
	if !segmentName.MatchString(segment) {
		return errors.New("not a name for a segment (want up to 32 letters, digits, dots, dashes and underscores)")
	}
	return nil
}

// validate checks the name of a segment and a Config, and fills in defaults.
func (c *Config) validate(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	switch {
	case c.Wire != nil && (!c.MAC.IsZero() || c.MTU != 0):
		return errors.New("Config.MAC, Config.MTU: are the wire's (leave them out)")
	case c.MAC.IsMulticast():
		return fmt.Errorf("Config.MAC %v: a group's address (want one with an even first byte)", c.MAC)
	case c.MTU < 0 || c.MTU > MaxMTU:
		return fmt.Errorf("Config.MTU %d (want 1 to %d)", c.MTU, MaxMTU)
	case c.RingBytes < 0 || c.RingBytes > MaxRingBytes:
		return fmt.Errorf("Config.RingBytes %d (want 1 to %d)", c.RingBytes, MaxRingBytes)
	}
	c.MTU = cmp.Or(c.MTU, DefaultMTU)
	if c.Wire != nil {
		c.MAC, c.MTU = c.Wire.MAC(), c.Wire.MTU()
	}
	if c.MAC.IsZero() {
		_, _ = rand.Read(c.MAC[:]) // it does not fail
		c.MAC = local(c.MAC)
	}
	data := records.DataFor(c.MTU)
	for data < c.RingBytes {
		data *= 2
	}
	c.RingBytes = data
	return nil
}
