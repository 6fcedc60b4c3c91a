// Package slottest is the unit's program in Go: what the one in the kernel does with a frame, for
// tests of that program, and of groups without a kernel.
package slottest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/rawlane/rawlane/barrier/internal/slot"
)

// Twin is the program at a slot.
type Twin struct {
	*slot.Slot
	label   uint8 // of the arrivals
	release []byte
}

// New returns the program at a slot, which it configures.
func New(s *slot.Slot, c *slot.Config) *Twin {
	s.Configure(c)
	return &Twin{s, c.Label, bytes.Clone(c.Release)}
}

// The frames of arrivals and releases, as offload.bpf.c has them.
const (
	offType       = 12
	offHeader     = 14
	offDstPort    = offHeader + 2
	offFrom       = offHeader + 4
	offTo         = offHeader + 6
	offCluster    = offHeader + 8
	offLength     = offHeader + 12
	offChecksum   = offHeader + 16
	offNotify     = offHeader + 20
	offNumber     = offNotify + 1
	offLabel      = offNotify + 2
	offFlags      = offNotify + 3
	offIdentity   = offNotify + 4
	offGeneration = offNotify + 16
	offAlgorithm  = offNotify + 20
	offIncarnatn  = offNotify + 24

	unicast = 0x11 // version and kind of mcd's header
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of mcd's header.
func checksum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[offHeader:offChecksum])
	return crc32.Update(sum, castagnoli, b[offNotify:slot.FrameLen])
}

// A frame that goes alone has a train's headers where it would overtake trains without them: IPv4's
// and UDP's, by which docs/wire-format.md tells trains.
const (
	trainLen   = 28
	offTotal   = 16 // where an untagged frame has them
	offSources = 26 // and destination
	offTrain   = 34 // kind of train, type of its frames, length
	offSum     = 40
)

var trainSources = []byte{239, 82, 76, 1, 239, 82, 76, 2}

// plain returns an arrival without a train's headers, and any other frame as it is.
func plain(b []byte) []byte {
	field := func(at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
	const payload = slot.FrameLen - offHeader
	if len(b) < trainLen+slot.FrameLen || field(offType) != 0x0800 || b[14] != 0x45 ||
		field(offTotal) != trainLen+payload || field(20)&0x3fff != 0 || b[23] != 17 ||
		!bytes.Equal(b[offSources:offTrain], trainSources) || field(offTrain) != 1 ||
		field(offTrain+4) != 8+payload {
		return b
	}
	p := append(bytes.Clone(b[:offType]), b[offTrain+2:offTrain+4]...)
	return append(p, b[offHeader+trainLen:]...)
}

// KeyOf returns the key of a frame, if it may be an arrival.
func KeyOf(b []byte) (k slot.Key, ok bool) {
	b = plain(b)
	if len(b) < slot.FrameLen || b[offHeader] != unicast {
		return k, false
	}
	k.Identity = [12]byte(b[offIdentity:])
	k.Node = [2]byte(b[offFrom:])
	k.Number = b[offNumber]
	return k, true
}

// arrival reports whether a frame is a member's arrival at the slot, of whichever generation.
func (t *Twin) arrival(b []byte, m *slot.Member) bool {
	r := t.release
	same := func(at, other, n int) bool { return bytes.Equal(b[at:at+n], r[other:other+n]) }
	return same(0, 6, 6) && [6]byte(b[6:]) == m.MAC && same(offType, offType, 2) &&
		b[offHeader+1] == 0 && same(offDstPort, offDstPort, 2) && same(offTo, offFrom, 2) &&
		same(offCluster, offCluster, 4) && same(offLength, offLength, 4) &&
		same(offNotify, offNotify, 2) && b[offLabel] == t.label && b[offFlags] == 0 &&
		same(offIdentity, offIdentity, 12) &&
		same(offAlgorithm, offAlgorithm, 4) && [4]byte(b[offIncarnatn:]) == m.Incarnation &&
		binary.BigEndian.Uint32(b[offChecksum:]) == checksum(b)
}

// Release returns the frame that releases a generation.
func (t *Twin) Release(generation uint32) []byte {
	b := bytes.Clone(t.release)
	binary.BigEndian.PutUint32(b[offGeneration:], generation)
	binary.BigEndian.PutUint32(b[offChecksum:], checksum(b))
	return b
}

// Handle does with a frame of a member what the program in the kernel does. out is the release, if
// the verdict is Transmit. In place of an arrival behind a train's headers it has UDP's sum for
// padding: the kernel may write that only when the frame is sent.
func (t *Twin) Handle(b []byte, m *slot.Member) (v slot.Verdict, out []byte) {
	var sum []byte
	if p := plain(b); len(p) < len(b) {
		b, sum = p, b[offSum:offSum+2]
	}
	if !t.arrival(b, m) {
		return slot.Pass, nil
	}
	generation := binary.BigEndian.Uint32(b[offGeneration:])
	if generation == 0 {
		return slot.Pass, nil
	}
	switch t.Arrive(int(m.Rank), generation) {
	case slot.Stale, slot.Left:
		return slot.Pass, nil
	case slot.Last:
		t.Next(generation)
		return slot.Transmit, append(t.Release(generation), sum...)
	}
	return slot.Drop, nil
}
