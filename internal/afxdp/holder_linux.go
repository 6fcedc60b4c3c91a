package afxdp

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xsk"
)

// Holder returns what is to know of the XDP program that an interface runs. Programs' names, and
// other users' processes, the kernel tells to root alone.
func Holder(index int) *xsk.OccupiedError {
	e := new(xsk.OccupiedError)
	if ifi, err := net.InterfaceByIndex(index); err == nil {
		e.Interface = ifi.Name
	}
	var id uint32
	id, e.Attached = attached(index)
	if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); err == nil {
		if info, err := p.Info(); err == nil {
			e.Program = info.Name
		}
		_ = p.Close() // it was only asked for its name
	}
	e.PID = holdingProcess(id)
	return e
}

// Attributes of IFLA_XDP, linux/if_link.h: the id of the program in each way to be attached. NLA_F_
// flags are in the upper bits of a type.
const (
	iflaXDPProgID    = 4
	iflaXDPDrvProgID = 5
	iflaXDPSkbProgID = 6
	iflaXDPHwProgID  = 7
	attributeType    = 0x3fff
)

// ways are the ways, with ip's words for them.
var ways = []struct {
	attribute uint16
	word      string
}{{iflaXDPDrvProgID, "xdpdrv"}, {iflaXDPSkbProgID, "xdpgeneric"}, {iflaXDPHwProgID, "xdpoffload"}, {iflaXDPProgID, ""}}

// AttachedProgram returns the id of the XDP program of an interface, or 0.
func AttachedProgram(index int) (id uint32) {
	id, _ = attached(index)
	return id
}

// attached returns the id of the XDP program of an interface, or 0, and how it is attached.
func attached(index int) (id uint32, how string) {
	for _, a := range afpacket.LinkAttributes(index) {
		if a.Attr.Type&attributeType == unix.IFLA_XDP {
			return programID(a.Value)
		}
	}
	return 0, ""
}

// programID returns the program's id in the attributes nested in IFLA_XDP, or 0, and how it is
// attached: "" if that is not said.
func programID(nested []byte) (id uint32, how string) {
	all := attributes(nested)
	for _, w := range ways {
		if v := all[w.attribute]; len(v) >= 4 && binary.NativeEndian.Uint32(v) != 0 {
			return binary.NativeEndian.Uint32(v), w.word
		}
	}
	return 0, ""
}

// attributes splits netlink attributes by type.
func attributes(b []byte) map[uint16][]byte {
	all := make(map[uint16][]byte)
	for len(b) >= unix.SizeofNlAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		all[binary.NativeEndian.Uint16(b[2:])&attributeType] = b[unix.SizeofNlAttr:size]
		b = b[min(len(b), (size+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
	}
	return all
}

// holdingProcess returns a process with a descriptor of the XDP link that runs a program, or 0. A
// program that was attached in the old way belongs to none. (Numbers of interfaces repeat in other
// network namespaces; those of programs do not.)
func holdingProcess(program uint32) int {
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // none, without /proc
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil && isLinkOf(string(b), program) { // else it has ended, or is another user's
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			return pid
		}
	}
	return 0
}

// isLinkOf reports whether what /proc says of a descriptor is an XDP link with a program.
func isLinkOf(fdinfo string, program uint32) bool {
	isLink, ours := false, false
	for line := range strings.Lines(fdinfo) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		isLink = isLink || key == "link_type" && value == "xdp"
		ours = ours || key == "prog_id" && value == strconv.FormatUint(uint64(program), 10)
	}
	return isLink && ours
}
