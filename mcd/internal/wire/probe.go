package wire

import "encoding/binary"

// ProbeHeadLen is the length in bytes of what probes and answers begin their payloads with.
const ProbeHeadLen = 16

// Flags of a ProbeHead. Others are 0 when sent and ignored when received.
const (
	ProbeDetour     = 0x01 // answer by the tag in Back, and not by the one that this is sent with
	ProbeBackTagged = 0x02 // Back is a tag; without it a detour is untagged
	ProbeAnyone     = 0x04 // answer whatever the header's To says
	ProbeSeenTagged = 0x08 // in an answer: the probe arrived with the tag in Seen
)

// ProbeHead is what a probe asks, and its answer repeats.
type ProbeHead struct {
	Number   uint32 // the asker's, to tell its probes apart
	Flags    uint8
	Back     uint16 // TCI of the answer, of a detour
	Seen     uint16 // in an answer: TCI that the probe arrived with
	Instance uint32 // of the sender of this frame: a random number of its life
}

// Put writes h to the beginning of b, which must hold ProbeHeadLen bytes.
func (h *ProbeHead) Put(b []byte) {
	binary.BigEndian.PutUint32(b[0:], h.Number)
	b[4], b[5] = h.Flags, 0
	binary.BigEndian.PutUint16(b[6:], h.Back)
	binary.BigEndian.PutUint16(b[8:], h.Seen)
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint32(b[12:], h.Instance)
}

// Parse reads a payload's beginning. It reports whether there was enough of it.
func (h *ProbeHead) Parse(b []byte) bool {
	if len(b) < ProbeHeadLen {
		return false
	}
	h.Number = binary.BigEndian.Uint32(b[0:])
	h.Flags = b[4]
	h.Back = binary.BigEndian.Uint16(b[6:])
	h.Seen = binary.BigEndian.Uint16(b[8:])
	h.Instance = binary.BigEndian.Uint32(b[12:])
	return true
}

// Has reports whether all of these flags are set.
func (h *ProbeHead) Has(flags uint8) bool { return h.Flags&flags == flags }
