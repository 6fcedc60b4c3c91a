package mcd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// Checksum is how much of a message its checksum covers, as data digests are a choice in iSCSI (RFC
// 7143 §13.1) and CRCs in iWARP (RFC 5044 §7.1). The header is always covered: no message goes
// astray. The sender chooses; receivers read what each frame says, so nodes may differ. With keys
// there is no checksum, but a tag, and that covers all.
//
// A node that receives from memory through a wrapper, such as package fault's, which may alter what
// memory does not, wants payloads covered, unless it has ChecksumHeader itself: it says so to those
// that send to it (transport.Exact), which cover them from then on, whatever they have chosen, and
// drops frames that have a checksum of the header alone.
type Checksum uint8

const (
	// ChecksumAuto is ChecksumHeader for links that hand out what was sent, as they copy it in
	// memory (transport.Exact), and ChecksumPayload for all others.
	ChecksumAuto Checksum = iota
	// ChecksumPayload covers header and payload, from the sender's memory to the receiver's.
	ChecksumPayload
	// ChecksumHeader covers the header alone. Whether a payload arrives as it was sent is left to
	// the link: to the Ethernet FCS of each hop, which NICs and switches check, and on links over
	// UDP to its checksum, which receivers of the trains of ring and packet links do not look at.
	// What memory, buses and switches do to it between those checks is not noticed. It saves a look
	// at each byte at both ends.
	ChecksumHeader
)

var checksumNames = []string{"auto", "payload", "header"}

// String names c as UnmarshalText reads it.
func (c Checksum) String() string {
	if int(c) < len(checksumNames) {
		return checksumNames[c]
	}
	return fmt.Sprintf("checksum %d", uint8(c))
}

// MarshalText implements encoding.TextMarshaler.
func (c Checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads auto, payload or header.
func (c *Checksum) UnmarshalText(text []byte) error {
	i := slices.Index(checksumNames, string(text))
	if i < 0 {
		return fmt.Errorf("checksum %q: want %s", text, strings.Join(checksumNames, ", "))
	}
	*c = Checksum(i)
	return nil
}

// on returns what c is on a link.
func (c Checksum) on(l transport.Link) Checksum {
	switch {
	case c != ChecksumAuto:
		return c
	case transport.IsExact(l):
		return ChecksumHeader
	}
	return ChecksumPayload
}

// coverage is what the checksums of a link's messages cover.
type coverage struct {
	checksum Checksum        // what Config.Checksum is on this link
	exact    transport.Exact // the link, or what it wraps, where others may want more; nil: they cannot
	wanted   bool            // what is received is to have its payload covered
}

// newCoverage says what c is on a link, and tells those that send to it what they are to cover.
func newCoverage(c Checksum, l transport.Link) coverage {
	v := coverage{checksum: c.on(l)}
	exact, ok := transport.As[transport.Exact](l)
	if !ok {
		return v
	}
	if v.checksum == ChecksumHeader {
		v.exact = exact
	}
	if _, bare := l.(transport.Exact); !bare && c != ChecksumHeader {
		exact.Alters()
		v.wanted = exact.Exact() // else frames may be a wire's, whose senders have not heard
	}
	return v
}

// sent returns how much of the next messages is covered.
func (v *coverage) sent() Checksum {
	if v.exact != nil && v.exact.Altered() {
		return ChecksumPayload
	}
	return v.checksum
}

// Checksum returns how much of the messages that leave by link nic is covered now: ChecksumPayload,
// as with keys, or ChecksumHeader. It is ChecksumAuto if there is no such link.
func (e *Endpoint) Checksum(nic int) Checksum {
	if e.checkNIC(nic) != nil {
		return ChecksumAuto
	}
	return e.nics[nic].coverage.sent()
}
