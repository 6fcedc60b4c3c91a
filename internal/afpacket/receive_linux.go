package afpacket

import (
	"encoding/binary"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Received is one frame as the kernel hands it over, through a ring's slot or recvmmsg(2): its
// bytes without the 802.1Q tag, and the tag from tpacket2_hdr or tpacket_auxdata.
type Received struct {
	Bytes  []byte // what of the frame was stored
	Len    int    // its length before it was cut to fit
	Status uint32 // TP_STATUS_VLAN_VALID: it had a tag
	TCI    uint16 // the tag's control information
}

// Accept turns a received frame into f and reports whether Poll hands it out. It refuses, and
// counts, frames that were cut or are too short; it refuses frames for groups that were not joined.
func Accept(a *Attachment, r Received, f *transport.Frame) bool {
	b := r.Bytes
	if len(b) < r.Len || len(b) < transport.HeaderLen {
		a.rx.malformed.Add(1)
		return false
	}
	f.Dst = transport.MAC(b[0:6])
	f.Src = transport.MAC(b[6:12])
	f.EtherType = transport.EtherType(binary.BigEndian.Uint16(b[12:]))
	f.Payload, f.Headroom, f.Answers, f.Origin = b[transport.HeaderLen:], nil, nil, 0
	// The status decides, not the value: a tag of zeros is a tag.
	f.OptionalTag = transport.OptionalTagFromTCI(r.Status&unix.TP_STATUS_VLAN_VALID != 0, r.TCI)
	return !f.Dst.IsMulticast() || a.cfg.Promiscuous || a.groups.Has(f.Dst)
}

// AcceptWhole is Accept for a frame that has its tag in its bytes. tpid is the EtherType of the
// tag, or 0 without one.
func AcceptWhole(a *Attachment, b []byte, f *transport.Frame) (tpid transport.EtherType, ok bool) {
	if tpid, ok = parseWhole(b, f); !ok {
		a.rx.malformed.Add(1)
		return 0, false
	}
	return tpid, !f.Dst.IsMulticast() || a.cfg.Promiscuous || a.groups.Has(f.Dst)
}

// parseWhole makes f of a frame's bytes: its header, one tag of 802.1Q or 802.1ad if it has one,
// and its payload, which is a view. ok is false if b is too short for that.
func parseWhole(b []byte, f *transport.Frame) (tpid transport.EtherType, ok bool) {
	if len(b) < transport.HeaderLen {
		return 0, false
	}
	f.Dst, f.Src, f.Headroom, f.Answers, f.Origin = transport.MAC(b[0:6]), transport.MAC(b[6:12]), nil, nil, 0
	f.EtherType = transport.EtherType(binary.BigEndian.Uint16(b[12:]))
	if f.EtherType != transport.EtherTypeVLAN && f.EtherType != transport.EtherTypeQinQ {
		f.OptionalTag, f.Payload = transport.Untagged, b[transport.HeaderLen:]
		return 0, true
	}
	if len(b) < transport.MaxHeaderLen {
		return 0, false
	}
	tpid = f.EtherType
	f.OptionalTag = transport.Tagged(transport.TagFromTCI(binary.BigEndian.Uint16(b[14:])))
	f.EtherType = transport.EtherType(binary.BigEndian.Uint16(b[16:]))
	f.Payload = b[transport.MaxHeaderLen:]
	return tpid, true
}

// CountReceived adds the frames that a Poll hands out to the counters.
func CountReceived(a *Attachment, frames []transport.Frame) {
	bytes := 0
	for i := range frames {
		bytes += frames[i].WireLen()
	}
	a.rx.frames.Add(uint64(len(frames)))
	a.rx.bytes.Add(uint64(bytes))
}

// LinkError names the link and the act, poll or send, in an error that is the link's own.
func LinkError(a *Attachment, act string, err error) error { return a.wrap(act, err) }

// ReadReceived fills in what the link has counted of received frames.
func ReadReceived(a *Attachment, c *transport.Counters) { a.rx.read(c) }

// rxCounters count what a link has received.
type rxCounters struct{ frames, bytes, malformed, noRoom, trains atomic.Uint64 }

func (r *rxCounters) read(c *transport.Counters) {
	c.RxFrames, c.RxBytes, c.RxMalformed = r.frames.Load(), r.bytes.Load(), r.malformed.Load()
}
