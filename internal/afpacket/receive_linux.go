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
		add(&a.rx.malformed, 1)
		return false
	}
	f.Dst = transport.MAC(b[0:6])
	f.Src = transport.MAC(b[6:12])
	f.EtherType = transport.EtherType(binary.BigEndian.Uint16(b[12:]))
	f.Payload = b[transport.HeaderLen:]
	// The status decides, not the value: a tag of zeros is a tag.
	f.OptionalTag = transport.OptionalTagFromTCI(r.Status&unix.TP_STATUS_VLAN_VALID != 0, r.TCI)
	return !f.Dst.IsMulticast() || a.cfg.Promiscuous || a.groups.Has(f.Dst)
}

// CountReceived adds the frames that a Poll hands out to the counters.
func CountReceived(a *Attachment, frames []transport.Frame) {
	bytes := 0
	for i := range frames {
		bytes += frames[i].WireLen()
	}
	add(&a.rx.frames, len(frames))
	add(&a.rx.bytes, bytes)
}

// PollError names the link in an error of Poll.
func PollError(a *Attachment, err error) error { return a.wrap("poll", err) }

// rxCounters are written by the polling goroutine alone and read by any.
type rxCounters struct{ frames, bytes, malformed, noRoom, trains atomic.Uint64 }

func (r *rxCounters) read(c *transport.Counters) {
	c.RxFrames, c.RxBytes, c.RxMalformed = r.frames.Load(), r.bytes.Load(), r.malformed.Load()
}

// add is an addition for counters with one writer at a time: a store costs 1 ns, an atomic add 5.
func add(c *atomic.Uint64, n int) { c.Store(c.Load() + uint64(n)) }
