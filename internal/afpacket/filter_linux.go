package afpacket

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// WholeFrame is the filter's verdict "store all of it": more bytes than any frame has.
const WholeFrame = 1 << 18

// AttachFilter makes the kernel filter what a socket receives.
func AttachFilter(fd int, filter []bpf.RawInstruction) error {
	program := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// DropAll makes the kernel drop all that a socket would receive.
func DropAll(fd int) error {
	nothing, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
	if err == nil {
		err = AttachFilter(fd, nothing)
	}
	return Explain("attach the filter", err)
}

// newFilter returns the kernel's filter for a receiving socket. It passes frames of the EtherType
// (or of any), and of these, unless the link is promiscuous, those to a group or to mac.
//
// The kernel has taken the tag off by then, so the EtherType stands at offset 12 in tagged frames
// too. Frames from this station's own address pass: outgoing frames are ignored by a socket option,
// so these came back by a loop or a port mirror, or are another station's with the same address,
// and the layer above counts them.
func newFilter(
	etherType transport.EtherType, mac transport.MAC, promiscuous, trains bool,
) ([]bpf.RawInstruction, error) {
	program := filterFor(etherType, mac, promiscuous, trains)
	return bpf.Assemble(append(program, bpf.RetConstant{Val: WholeFrame}))
}

// FilterFor is the beginning of a filter: it drops the frames that newFilter's drops.
func FilterFor(etherType transport.EtherType, mac transport.MAC, promiscuous bool) []bpf.Instruction {
	return filterFor(etherType, mac, promiscuous, false)
}

// passTrains are instructions behind a look at the EtherType. They skip one more for trains of an
// EtherType.
func passTrains(etherType transport.EtherType) []bpf.Instruction {
	const ip = transport.HeaderLen
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(etherTypeIPv4), SkipTrue: 6},
		bpf.LoadAbsolute{Off: ip, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x45, SkipTrue: 4}, // with options
		bpf.LoadAbsolute{Off: ip + 12, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: trainSource, SkipTrue: 2},
		bpf.LoadAbsolute{Off: ip + trainIP + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(etherType), SkipTrue: 1},
	}
}

func filterFor(
	etherType transport.EtherType, mac transport.MAC, promiscuous, trains bool,
) (program []bpf.Instruction) {
	drop := bpf.RetConstant{Val: 0}
	if etherType != transport.EtherTypeAny {
		var others []bpf.Instruction
		if trains {
			others = passTrains(etherType)
		}
		program = append(program,
			bpf.LoadAbsolute{Off: 12, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(etherType), SkipTrue: uint8(len(others) + 1)},
		)
		program = append(append(program, others...), drop)
	}
	if !promiscuous {
		high, low := binary.BigEndian.Uint32(mac[0:]), uint32(binary.BigEndian.Uint16(mac[4:]))
		program = append(program,
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 1, SkipTrue: 5}, // a group address
			bpf.LoadAbsolute{Off: 0, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: high, SkipTrue: 2},
			bpf.LoadAbsolute{Off: 4, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: low, SkipTrue: 1},
			drop,
		)
	}
	return program
}
