package slot

import "github.com/rawlane/rawlane/transport"

// Where the frames of releases have what is looked at: Ethernet's header, that of mcd and a notify,
// without a tag. docs/wire-format.md has the layouts; offload.bpf.c has the same offsets.
const (
	offHeader = 14
	offNotify = offHeader + 20
	FrameLen  = offNotify + 28

	multicast = 0x12 // version and kind of mcd's header

	releaseRoom = 64
)

// Key finds the member whose arrival a frame is.
type Key struct {
	Identity [12]byte // of the group: hash and epoch, as on the wire
	Node     [2]byte
	Number   uint8
	_        uint8
}

// Member is what is known of a member: what its frames must carry.
type Member struct {
	Slot        uint32
	Rank        uint32
	Incarnation [4]byte
	MAC         transport.MAC
	_           [2]byte
}

// Verdict is what a unit does with a frame.
type Verdict uint32

// The verdicts, as the kernel numbers them.
const (
	Drop     Verdict = 1 // counted, or a double
	Pass     Verdict = 2 // to the Center's process
	Transmit Verdict = 3 // the frame has become the release
)

// CanRelease reports whether a frame can be that of a slot's releases: an untagged multicast of one
// notify.
func CanRelease(b []byte) bool {
	return len(b) == FrameLen && b[offHeader] == multicast && b[offHeader+1] == 0
}
