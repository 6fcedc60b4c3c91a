package control

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// What a probe of Failover carries, after the probe's own head. docs/wire-format.md describes it.
const (
	failoverVersion = 0x11 // version 1 in the upper four bits, kind 1 in the lower
	failoverHead    = 8
	failoverEntry   = 2
)

// failoverNews is what one end tells the other: what it thinks of each path, and its choice.
type advertisement struct {
	choice  transport.VID
	number  uint32 // of the probe, among those to this peer
	entries []byte // state in the upper four bits, VID in the lower twelve; a view
}

// appendNews appends what is to be told to a peer now.
func (p *failoverPeer) appendAdvertisement(b []byte) []byte {
	b = append(b, failoverVersion, byte(len(p.paths)))
	b = binary.BigEndian.AppendUint16(b, uint16(p.current.vid))
	b = binary.BigEndian.AppendUint32(b, p.number)
	for _, path := range p.paths {
		b = binary.BigEndian.AppendUint16(b, uint16(path.state)<<12|uint16(path.vid))
	}
	return b
}

// parse reads a body. It returns false if that is not one of ours, or malformed. What follows it is ignored.
func (n *advertisement) parse(b []byte) bool {
	if len(b) < failoverHead || b[0] != failoverVersion {
		return false
	}
	count := int(b[1])
	if count == 0 || count > MaxFailoverVIDs || len(b) < failoverHead+count*failoverEntry {
		return false
	}
	n.choice = transport.VID(binary.BigEndian.Uint16(b[2:]))
	n.number = binary.BigEndian.Uint32(b[4:])
	n.entries = b[failoverHead : failoverHead+count*failoverEntry]
	return true
}

// noteReport takes over what the peer thinks of each path. One that it does not know is no use to the pair.
func (p *failoverPeer) noteReport(now monotime.Time, n *advertisement) {
	for _, path := range p.paths {
		if path.reported != PathWaitToRestore {
			path.heldSince = now
		}
		path.reported = PathDown
	}
	for at := 0; at < len(n.entries); at += failoverEntry {
		entry := binary.BigEndian.Uint16(n.entries[at:])
		if path := p.path(transport.VID(entry & 0xfff)); path != nil {
			path.reported = min(PathState(entry>>12), PathDown)
		}
	}
}
