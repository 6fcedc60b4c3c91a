package transport

import (
	"fmt"
	"io"
)

// Wrapper is a link around another one. As looks in the inner link for abilities that the wrapper
// does not have itself.
type Wrapper interface{ Unwrap() Link }

// Joiner is a link that filters group addresses: it hands out only frames for groups it joined.
// Joins are counted: a group is left when Leave was called as often as Join.
type Joiner interface {
	Join(group MAC) error
	Leave(group MAC) error
}

// WakeupMasker is a link that can leave a waiting goroutine asleep while another one polls.
//
// After MaskWakeups(true) arriving frames end no Wait, in progress or to come: use it while a
// goroutine polls the link in a loop, so that frames do not wake a second one. MaskWakeups(false)
// undoes it, and ends a Wait if there is something to poll. Only one goroutine at a time may call
// it: the one that may poll the link.
type WakeupMasker interface{ MaskWakeups(on bool) }

// Sleeper is a link with a second Wait, for a goroutine that waits for a message: what comes wakes
// it alone, and not the one in Wait. Sleep blocks until there is something to poll, Interrupt is
// called (else the next Sleep returns at once), or the link is closed (ErrClosed). A failure of the
// link is Wait's, and may end a Sleep, too: so there is another goroutine in Wait. From Sleep on
// frames end no Wait, until Awake. One goroutine at a time may call these two.
type Sleeper interface {
	Sleep() error
	Awake()
	Interrupt()
}

// Namer is a link that has a name on this system, such as its network interface's when the link was
// opened. It is for people to read.
type Namer interface{ Name() string }

// Sharer is a link to a device that several processes may open. Segment identifies the attachment,
// the same for each of them: a process that needs part of it for itself, such as a port, locks it
// under that name.
type Sharer interface{ Segment() string }

// Attached is a link to a network interface of this system. Interface returns its index, and the
// network namespace that it is in, "" if the system does not tell: several interfaces may have one
// address, as a bridge and its port do, VLAN devices and the members of a bond.
type Attached interface {
	Interface() (index int, namespace string)
}

// Plugged is a link that knows whether its network interface has a carrier. HasCarrier returns true
// if the system does not tell, and if the interface is down.
type Plugged interface{ HasCarrier() bool }

// TypeFilter is a link that receives frames of one EtherType alone, or of all (EtherTypeAny).
type TypeFilter interface{ EtherType() EtherType }

// Public is a link that hosts of the internet may reach. PublicAddr returns the address by which
// they do, or "".
type Public interface{ PublicAddr() string }

// Roamer is a link whose stations may move, if their frames are authenticated. To find out whether
// a frame is authentic, and whether its station is where it came from, who polls asks by a frame
// that Answers it. That a frame is authentic does not say that its station is where it came from: a
// relay sends it on as it is. So a station says, in an answer that is sealed, from which Place that
// leaves; and one that has a place moves to another if it answers from there and the two agree, or
// if it is silent at the place that it had. But for Roamed, only the polling goroutine may call the
// methods.
type Roamer interface {
	// Authenticates says that who polls authenticates frames, and does what Requests asks for.
	// Overhead is how much shorter than a frame's payload what it seals has to be.
	Authenticates(overhead int)
	// Authentic says of a frame that was received lately, or of a copy, that its Src has sent it,
	// now or long ago.
	Authentic(f *Frame)
	// Answered says of such a frame that it answers what its Src was asked just now. Direct says
	// that the place which it says it left is CameFrom's. Answered reports whether it is settled
	// where Src is: nobody needs to be asked any more.
	Answered(f *Frame, direct bool) (settled bool)
	// Departure returns the place from which a frame leaves if it is sent now, and CameFrom that
	// from which one came that was received lately. Where frames are neither relayed nor their
	// addresses translated, the two are equal. The zero Place is not known.
	Departure(f *Frame) Place
	CameFrom(f *Frame) Place
	// Introduced hands over an authentic introduction, as another link has asked for.
	Introduced(b []byte)
	// Requests returns what the link wants sent, since the last call. It is valid until the next
	// Poll.
	Requests() []Request
	// Roamed reports whether this link has moved since the last call, in the eyes of its stations:
	// they find out by an authentic frame to each. It may take a tenth of a millisecond, and is for
	// one goroutine.
	Roamed() bool
}

// Place is where a Roamer's frames leave or arrive: an IP address, in 16 bytes, and a port.
type Place [18]byte

// Request is what a Roamer wants sent by who authenticates frames.
type Request struct {
	To MAC
	// Introduction is for the Introduced of To's link. If it is nil, To is to be asked where it is:
	// by frames that are sent to where the link has it, and others that answer one of that Origin.
	Introduction []byte
	Origin       uint32
}

// Trainer is a link that may send frames as trains: those that one Send is given, for one station
// and equal in length but the last, go as one packet. TrainMTU returns the longest payload, in
// bytes, of a frame that can be part of one: MTU, or a little less. Who cuts long data into frames
// cuts it to that. TrainFrames returns how many frames of that length one train has at most; 0 if
// the link is set to send none. Trains returns how many trains were sent and received.
//
// The system copies frames that lie side by side in memory as one piece, in half the time. What
// lies there is the payloads, each behind TrainHeadroom bytes of Frame.Headroom.
//
// A train for which the receiving system has no room counts as one frame in Counters.RxDropped: the
// system counts packets, and does not say how many frames they had.
type Trainer interface {
	TrainMTU() int
	TrainFrames() int
	TrainHeadroom() int
	Trains() (sent, received uint64)
}

// TrainMTU returns the longest payload of a frame that may go in a train, or l's MTU if l sends
// none.
func TrainMTU(l Link) int {
	if t, ok := As[Trainer](l); ok {
		return min(t.TrainMTU(), l.MTU())
	}
	return l.MTU()
}

// TrainHeadroom returns how many bytes of Frame.Headroom are between the payloads of a train that
// lie side by side, or 0 if l sends none.
func TrainHeadroom(l Link) int {
	if t, ok := As[Trainer](l); ok {
		return t.TrainHeadroom()
	}
	return 0
}

// TrainFrames returns how many frames go together at most, or 0 if l sends no trains.
func TrainFrames(l Link) int {
	if t, ok := As[Trainer](l); ok {
		return t.TrainFrames()
	}
	return 0
}

// LocalPath is how frames between two stations of one host go.
type LocalPath uint8

// The paths.
const (
	ByKernel  LocalPath = iota // each frame passes the kernel
	ByMemory                   // memory that processes share
	InProcess                  // the stations are in one process
)

// String names p.
func (p LocalPath) String() string {
	switch p {
	case ByKernel:
		return "kernel"
	case ByMemory:
		return "memory"
	case InProcess:
		return "process"
	}
	return fmt.Sprintf("path %d", uint8(p))
}

// LocalPather is a link whose frames for stations of its own host do not pass the kernel.
type LocalPather interface{ LocalPath() LocalPath }

// LocalPathOf returns how l's frames go to stations of its own host.
func LocalPathOf(l Link) LocalPath {
	if p, ok := As[LocalPather](l); ok {
		return p.LocalPath()
	}
	return ByKernel
}

// Gathered is a link that reaches links of its own host as well as those of its network, or them
// alone. Folder returns where they find each other: two links with one folder reach each other.
type Gathered interface{ Folder() string }

// Exact is a link that hands out the bytes of frames as they were sent, as it copies them in
// memory: a checksum of them would tell nothing. A wrapper may be one that alters frames: it does
// not have this ability of the link that it wraps. Who receives through such a wrapper says so to
// the wrapped link, and so to those that send to it.
type Exact interface {
	Exact() bool
	// Alters says that what this link hands out may be altered before it is looked at. That holds
	// until the link is closed.
	Alters()
	// Altered reports whether Alters was called at a station that this link reaches, or has
	// reached: its frames want a checksum.
	Altered() bool
}

// IsExact reports whether l itself says so.
func IsExact(l Link) bool {
	e, ok := l.(Exact)
	return ok && e.Exact()
}

// PortLocker is a link whose sockets a service granted: the service has the locks on ports, which
// other programs than those it serves then cannot take. The lock lasts until it is closed. Errors:
// a *LockedError, and ErrNotSupported if the link has no such service, and is to be locked under
// its Segment.
type PortLocker interface {
	LockPort(cluster uint32, port uint8) (io.Closer, error)
}

// PortLockName is the name, of an abstract Unix socket, under which a port of a cluster is locked
// on a segment.
func PortLockName(segment string, cluster uint32, port uint8) string {
	return fmt.Sprintf("rawlane/%s/%08x/%d", segment, cluster, port)
}

// As finds the ability T (Joiner, WakeupMasker, Namer or one of your own) in l or in the links it
// wraps.
func As[T any](l Link) (ability T, ok bool) {
	for l != nil {
		if ability, ok = l.(T); ok {
			return ability, true
		}
		w, wraps := l.(Wrapper)
		if !wraps {
			break
		}
		l = w.Unwrap()
	}
	return ability, false
}

// Join makes l receive frames for the group. It does nothing for a link that receives all groups.
func Join(l Link, group MAC) error {
	if j, ok := As[Joiner](l); ok {
		return j.Join(group)
	}
	return nil
}

// Leave undoes Join.
func Leave(l Link, group MAC) error {
	if j, ok := As[Joiner](l); ok {
		return j.Leave(group)
	}
	return nil
}

// Name returns the link's name, or its address if it has none.
func Name(l Link) string {
	if n, ok := As[Namer](l); ok {
		return n.Name()
	}
	return l.MAC().String()
}
