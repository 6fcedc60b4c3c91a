package afpacket

import (
	"encoding/binary"

	"golang.org/x/net/bpf"

	"github.com/rawlane/rawlane/transport"
)

// Filter returns the kernel's filter for a link's socket: frames of the EtherType (or of any), and, unless the link is
// promiscuous, to a group or to mac. The tag is off the frame by then, so the EtherType stands at offset 12 in tagged
// frames too. The socket is to ignore outgoing frames. Those that come back from the wire (from a loop, a port
// mirror, some virtual machines' networks), or from another station with this address, are seen: somebody has to
// notice.
func Filter(etherType transport.EtherType, mac transport.MAC, promiscuous bool) ([]bpf.RawInstruction, error) {
	const whole = 1 << 18 // more than any frame
	drop, take := bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: whole}
	var program []bpf.Instruction
	if etherType != transport.EtherTypeAny {
		program = append(program,
			bpf.LoadAbsolute{Off: 12, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(etherType), SkipTrue: 1},
			drop,
		)
	}
	if !promiscuous {
		program = append(program,
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 1, SkipTrue: 5}, // a group
			bpf.LoadAbsolute{Off: 0, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(mac[0:]), SkipTrue: 2},
			bpf.LoadAbsolute{Off: 4, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(mac[4:])), SkipTrue: 1},
			drop,
		)
	}
	return bpf.Assemble(append(program, take))
}
