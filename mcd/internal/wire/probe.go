package wire

import "encoding/binary"

// ProbeHeadLen is the length in bytes of the head that the payloads of probes and replies begin
// with.
const ProbeHeadLen = 16

// Flags of a ProbeHead. Others are 0 when sent and ignored when received.
const (
	ProbeReplyTag       = 0x01 // reply with the tag in ReplyTCI, and not with the probe's own
	ProbeReplyTagged    = 0x02 // ReplyTCI is a tag; without it, and with ProbeReplyTag, the reply is untagged
	ProbeAnyNode        = 0x04 // reply whatever node the header names
	ProbeReceivedTagged = 0x08 // in a reply: the probe arrived with the tag in ReceivedTCI
)

// ProbeHead is what a probe asks, and its reply repeats.
type ProbeHead struct {
	Number      uint32 // the sender's, to tell its probes apart
	Flags       uint8
	ReplyTCI    uint16 // the reply's tag, with ProbeReplyTag
	ReceivedTCI uint16 // in a reply: the tag that the probe arrived with
	Incarnation uint32 // of the sender of this frame: a random number, another one after each restart
}

// Put writes h to the beginning of b, which must hold ProbeHeadLen bytes.
func (h *ProbeHead) Put(b []byte) {
	binary.BigEndian.PutUint32(b[0:], h.Number)
	b[4], b[5] = h.Flags, 0
	binary.BigEndian.PutUint16(b[6:], h.ReplyTCI)
	binary.BigEndian.PutUint16(b[8:], h.ReceivedTCI)
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint32(b[12:], h.Incarnation)
}

// Parse reads the beginning of a payload. It returns false if there are fewer bytes than a head's.
func (h *ProbeHead) Parse(b []byte) bool {
	if len(b) < ProbeHeadLen {
		return false
	}
	h.Number = binary.BigEndian.Uint32(b[0:])
	h.Flags = b[4]
	h.ReplyTCI = binary.BigEndian.Uint16(b[6:])
	h.ReceivedTCI = binary.BigEndian.Uint16(b[8:])
	h.Incarnation = binary.BigEndian.Uint32(b[12:])
	return true
}

// Has reports whether all of these flags are set.
func (h *ProbeHead) Has(flags uint8) bool { return h.Flags&flags == flags }
