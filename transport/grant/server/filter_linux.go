package server

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Offsets of the message header's fields in a frame, behind addresses and EtherType: the kernel has
// taken the VLAN tag off. See docs/wire-format.md.
const (
	offKind    = transport.HeaderLen + 0 // low four bits
	offPort    = transport.HeaderLen + 2
	offCluster = transport.HeaderLen + 8
)

// firstPortless is the first kind of message that is for no port: probes and replies.
const firstPortless = 4

// newFilter returns the filter of a granted socket: what a link's own filter takes, and of that
// what came by the interface and is in one of the scopes.
//
// The interface is in the filter because a socket can be bound anew, and its filter, once locked,
// cannot be changed: bound to another interface the socket receives nothing.
func newFilter(
	index int, etherType transport.EtherType, mac transport.MAC, scopes []rules.Scope,
) ([]bpf.RawInstruction, error) {
	drop, take := bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: afpacket.WholeFrame}
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(index), SkipTrue: 1},
		drop,
	}
	program = append(program, afpacket.FilterFor(etherType, mac, false)...)
	for _, s := range scopes {
		var ports []bpf.Instruction
		for _, p := range s.Ports {
			ports = append(ports,
				bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(p.First), SkipTrue: 2},
				bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(p.Last), SkipTrue: 1},
				take,
			)
		}
		program = append(program,
			bpf.LoadAbsolute{Off: offCluster, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: s.Cluster.First, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: s.Cluster.Last, SkipTrue: 1},
			bpf.Jump{Skip: uint32(5 + len(ports))}, // to the next scope
			bpf.LoadAbsolute{Off: offKind, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x0f},
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstPortless, SkipTrue: 1},
			take,
			bpf.LoadAbsolute{Off: offPort, Size: 1},
		)
		program = append(program, ports...)
	}
	if program = append(program, drop); len(program) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the rules for this user make a filter of %d instructions, and the kernel takes %d "+
			"(ask for one cluster, or join ranges of the rules)", len(program), unix.BPF_MAXINSNS)
	}
	return bpf.Assemble(program)
}
