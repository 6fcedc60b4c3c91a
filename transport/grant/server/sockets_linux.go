package server

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// sockets are what one program is given: the descriptors, which are closed here once they are
// handed over, and mappings of both sockets' rings.
//
// The mappings stay as long as the program's connection. While a socket's ring is mapped anywhere,
// the kernel refuses to make it another one. So a program cannot take more of the kernel's memory,
// which a ring's is and which no other limit covers, than it was given.
type sockets struct {
	receive, send int               // -1 once they are closed; of link xdp there is no send
	xdp           *afxdp.Attachment // of link xdp; else nil
	inodes        []uint64
	mappings      []mapping
}

// mapping is a ring's memory, which nobody looks at here. It is mapped without unix.Mmap: its lock
// would have the removal of a mapping, with which a socket's last user may go, wait for others.
type mapping struct {
	at   unsafe.Pointer
	size uintptr
}

// attachment is an interface as it is at the moment.
type attachment struct{ *afpacket.Interface }

func findInterface(name string) (*attachment, error) {
	ifi, err := afpacket.FindInterface(name)
	if err != nil {
		return nil, err
	}
	return &attachment{ifi}, nil
}

// open makes the sockets of a request, fixed to scopes.
func (a *attachment) open(r *protocol.Request, scopes []rules.Scope) (_ *sockets, err error) {
	if r.XDP {
		return a.openXDP(r, scopes)
	}
	s := &sockets{receive: -1, send: -1}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	filter, err := newFilter(a.Index, r.EtherType, a.MAC, scopes)
	if err != nil {
		return nil, err
	}
	if s.receive, err = afpacket.OpenSocket(); err != nil {
		return nil, afpacket.Explain("make the socket", err)
	}
	if err := s.fixMemory(s.receive, a.layout(r)); err != nil {
		return nil, afpacket.Explain("make the ring", err)
	}
	if !r.Ring {
		if err := unix.SetsockoptInt(s.receive, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
			return nil, afpacket.Explain("ask for tags", err)
		}
	}
	if err := afpacket.Bind(s.receive, a.Index, filter); err != nil {
		return nil, err
	}
	if err := lockFilter(s.receive); err != nil {
		return nil, err
	}
	if err := s.openSend(a.Index); err != nil {
		return nil, err
	}
	if err := s.readInodes(); err != nil {
		return nil, err
	}
	return s, nil
}

// readInodes learns by which numbers the kernel lists the sockets.
func (s *sockets) readInodes() error {
	for _, fd := range []int{s.receive, s.send} {
		if fd < 0 {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return afpacket.Explain("number the socket", err)
		}
		s.inodes = append(s.inodes, st.Ino)
	}
	return nil
}

// openSend makes the sending socket. A program that binds it anew receives nothing by it, either.
func (s *sockets) openSend(index int) (err error) {
	if s.send, err = afpacket.OpenSendSocket(index); err != nil {
		return afpacket.Explain("make the sending socket", err)
	}
	if err := afpacket.DropAll(s.send); err != nil {
		return err
	}
	if err := s.fixMemory(s.send, oneSlot); err != nil {
		return afpacket.Explain("make the ring", err)
	}
	return lockFilter(s.send)
}

func lockFilter(fd int) error {
	return afpacket.Explain("lock the filter", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1))
}

// layout returns the ring that the request wants.
func (a *attachment) layout(r *protocol.Request) afpacket.RingLayout {
	if !r.Ring {
		return afpacket.RingLayout{}
	}
	return afpacket.NewRingLayout(a.MTU, r.Slots)
}

// oneSlot is the smallest ring: a page.
var oneSlot = afpacket.RingLayout{SlotSize: os.Getpagesize(), Slots: 1}

// fixMemory gives a socket its ring, and maps it. A socket that is to have none for receiving gets
// one for sending, which nobody uses: either keeps the other out.
func (s *sockets) fixMemory(fd int, layout afpacket.RingLayout) error {
	setUp := layout.SetUp
	if layout.Slots == 0 {
		layout, setUp = oneSlot, oneSlot.SetUpSending
	}
	if err := setUp(fd); err != nil {
		return err
	}
	m := mapping{size: uintptr(layout.Bytes())}
	var err error
	if m.at, err = unix.MmapPtr(fd, 0, nil, m.size, unix.PROT_READ, unix.MAP_SHARED); err == nil {
		s.mappings = append(s.mappings, m)
	}
	return err
}

// descriptors are those to hand over.
func (s *sockets) descriptors() []int {
	if s.xdp != nil {
		return append([]int{s.receive}, s.xdp.Descriptors()...)
	}
	return []int{s.receive, s.send}
}

// closeDescriptors leaves the sockets to the program that has got them.
func (s *sockets) closeDescriptors() {
	if s.xdp != nil {
		_ = s.xdp.CloseSockets() // as below
	}
	for _, fd := range []*int{&s.receive, &s.send} {
		if *fd >= 0 {
			_ = unix.Close(*fd) // nothing was written by it
			*fd = -1
		}
	}
}

// close closes what the service has of the sockets.
func (s *sockets) close() {
	s.closeDescriptors()
	for _, m := range s.mappings {
		_ = unix.MunmapPtr(m.at, m.size) // it is a mapping of ours
	}
	s.mappings = nil
}

// forget closes what was kept to tell whether the client has its sockets still.
func (s *sockets) forget() {
	if s.xdp != nil {
		_ = s.xdp.Close() // it is detached
	}
}

// cause classes an error of opening.
func cause(err error) protocol.Cause {
	var occupied *xsk.OccupiedError
	switch {
	case errors.As(err, &occupied):
		return protocol.Occupied
	case errors.Is(err, transport.ErrNoInterface):
		return protocol.NoInterface
	case errors.Is(err, transport.ErrInterfaceDown):
		return protocol.InterfaceDown
	case errors.Is(err, transport.ErrNotSupported):
		return protocol.NotSupported
	}
	return protocol.Failed
}
