package control

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// The body of a failover's probe, after the probe's own head. docs/wire-format.md describes it.
const (
	adVersion = 0x11 // version 1 in the upper four bits, kind 1 in the lower
	adHead    = 8    // bytes
	adEntry   = 2    // bytes
)

// advertisement is what one end tells the other: its choice, and the state of each path.
type advertisement struct {
	choice  transport.VID
	number  uint32 // of the probe, among those to this peer
	entries []byte // state in the upper four bits, VID in the lower twelve; a view
}

// appendAdvertisement appends what a probe to the peer advertises now.
func (p *peer) appendAdvertisement(b []byte) []byte {
	b = append(b, adVersion, byte(len(p.paths)))
	b = binary.BigEndian.AppendUint16(b, uint16(p.current.vid))
	b = binary.BigEndian.AppendUint32(b, p.number)
	for _, path := range p.paths {
		b = binary.BigEndian.AppendUint16(b, uint16(path.state)<<12|uint16(path.vid))
	}
	return b
}

// parse reads a body. It returns false if that is no advertisement, or malformed. It ignores what
// follows.
func (a *advertisement) parse(b []byte) bool {
	if len(b) < adHead || b[0] != adVersion {
		return false
	}
	count := int(b[1])
	if count == 0 || count > MaxFailoverVIDs || len(b) < adHead+count*adEntry {
		return false
	}
	a.choice = transport.VID(binary.BigEndian.Uint16(b[2:]))
	a.number = binary.BigEndian.Uint32(b[4:])
	a.entries = b[adHead : adHead+count*adEntry]
	return true
}

// isOvertaken reports whether the peer has said something newer than a probe: by a later one, or by
// one since it has begun anew. Numbers keep up with time: what the incarnation before has sent
// since then, by its number, shows that it is there still, as where the probe of the present one
// was late itself.
func (p *peer) isOvertaken(now monotime.Time, incarnation, number uint32) bool {
	switch {
	case !p.heard:
		return false
	case incarnation == p.incarnation:
		return int32(number-p.newest) <= 0 && now.Sub(p.heardAt) < overtakes
	}
	return incarnation == p.former && int32(number-p.formerNewest) <= 0 && now.Sub(p.begunAt) < overtakes
}

// adopt takes over the peer's states of the paths. A path that it does not list is no use to the
// pair.
func (p *peer) adopt(now monotime.Time, ad *advertisement) {
	for _, path := range p.paths {
		if path.reported != PathWaitToRestore {
			path.reportedSince = now
		}
		path.reported = PathDown
	}
	for at := 0; at < len(ad.entries); at += adEntry {
		entry := binary.BigEndian.Uint16(ad.entries[at:])
		if path := p.path(transport.VID(entry & 0xfff)); path != nil {
			path.reported = min(PathState(entry>>12), PathDown)
		}
	}
}
