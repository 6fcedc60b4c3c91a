package decode

import (
	"cmp"
	"errors"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/mcd/internal/wire"
)

// cutter cuts frames apart that went together. They are equal in length but the last, which may be
// shorter: so those are found that stand behind one whose header cannot be believed.
type cutter struct {
	size int // of each, once it is known
}

// message decodes the frame at the front of data, behind its first bytes, which are the frame's
// headers, and returns how long it is.
func (c *cutter) message(
	eth *layers.Ethernet, behind int, data []byte, feedback gopacket.DecodeFeedback,
) (m *Message, size int, err error) {
	m = new(Message)
	if err := m.decodeIn(eth, data[behind:], feedback); err != nil {
		return nil, 0, err
	}
	size = behind + len(m.Contents) + len(m.Payload)
	spoilt := errors.Is(m.Fault, faults[wire.BadChecksum])
	if !spoilt && !errors.Is(m.Fault, faults[wire.BadLength]) && !errors.Is(m.Fault, faults[wire.BadVersion]) {
		c.size = cmp.Or(c.size, size) // it is as it was sent
		return m, size, nil
	}
	if c.size == 0 {
		c.size = equals(data, behind)
	}
	switch {
	case c.size > 0:
		size = min(c.size, len(data))
	case !spoilt:
		return m, len(data), nil // where it ends is not known
	}
	return m, size, m.decodeIn(eth, data[behind:size], feedback)
}

// equals returns the length of the frames in data, the first of which cannot be believed, by the
// second: it is as long, or the last. 0 is not known.
func equals(data []byte, behind int) int {
	for at := behind + wire.HeaderLen; at+behind+wire.HeaderLen <= len(data); at++ {
		b := data[at+behind:]
		n, auth := behind+wire.HeaderLen+wire.LengthOf(b), false
		if wire.VersionOf(b) == wire.AuthVersion {
			n, auth = n+wire.AuthHeaderLen-wire.HeaderLen, true
		}
		if n != at && at+n != len(data) {
			continue
		}
		var h wire.Header
		var a wire.Auth
		if auth && wire.ParseAuth(b, &h, &a) == wire.OK || !auth && wire.Parse(b, &h) == wire.OK {
			return at
		}
	}
	return 0
}
