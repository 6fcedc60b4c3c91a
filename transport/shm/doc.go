// Package shm is a link over shared memory: for nodes in processes of one host, and of one user.
//
// Two links of one segment share a ring of memory for each direction. To send is to copy a frame
// into the receiver's ring and to set a bit in its bell; to receive is to look at that bit. Neither
// makes a system call, unless the receiver sleeps: then the sender wakes it, by an eventfd.
//
//	a --> | frame | frame |   ring, a writes, b reads      bell of b: | 1 | 0 | 0 |  b sleeps: no
//	b --> | frame |           ring, b writes, a reads      bell of a: | 0 | 1 | 0 |  a sleeps: yes
//
// # Alone, or with a wire
//
// A link that stands alone reaches the stations of its segment, and needs no privilege:
//
//	link, err := shm.Open("demo", shm.Config{})
//
// With Config.Wire it is around another link, and has that one's address and MTU. A frame for a
// station of this host goes through memory, and every other one by the wire, so each node is
// reached by whatever is nearest; a multicast goes both ways, and of two copies one is handed out.
// When the way through memory ends, as the other process ends or closes its link, frames for its
// station go by the wire again:
//
//	wire, err := ring.Open("eth0", ring.Config{})
//	link, err := shm.Open("job7", shm.Config{Wire: wire})
//
// A wire that is down, or has had no room for any frame for a second, keeps no multicast from the
// stations of this host: it goes to these alone, and is lost on the wire.
//
// While two stations meet or part, frames that are on different ways may overtake each other, and a
// multicast may be lost or arrive twice, as where a route changes.
//
// # Segments
//
// The links of a segment find each other by its name, in a folder of the user's own: see
// Config.Dir. Each listens on a Unix socket there, and passes the others the memory (memfd, sealed
// so that nobody can shrink it) and its eventfd. Links in different network namespaces meet, too,
// as long as they have the folder in common; links of different hosts do not, if these share it, as
// each kernel has its own part of it. The kernel tells each when another one's process ends,
// however it ends, also if it has forked others that keep its sockets (before Linux 5.3, and where
// descriptors have run out, not until these end, too): nothing stays locked, no half-written frame
// is seen, and what it has left in the folder is removed by the next link that opens. Frames that
// it had sent before are received, unless the receiver polls so seldom that MaxStations others
// leave frames behind, too: then the oldest are dropped, and counted as its RxDropped.
//
// Two networks of a node are two segments, each with a name of its own. In one segment each of its
// links would reach both links of the others: package mcd refuses two such links of one endpoint.
//
// # Promises
//
// As on the in-memory fabric a sender is told transport.ErrBusy where a receiver's ring is full,
// and no frame for one station is lost from when the two have met until one of them closes, or cuts
// off the other, while both read. One that has not read for a second, as its process was stopped,
// loses what there is no room for, as on a wire. A multicast does not wait for the slowest: a copy
// for which a ring has no room is dropped. Both are counted as the receiver's RxDropped.
//
// Memory: a ring has 512 KiB for an MTU of 9,000 bytes, and takes only as much as it was ever
// filled: 4 KiB where the receiver keeps up with short frames, and 16 KiB with the longest. (With
// vm.overcommit_memory=2 it takes all from the beginning: a process that touches a page which the
// system does not have would be killed.) n nodes have n(n-1) rings: 32 nodes have 4 MiB with short
// frames, and 496 MiB at most; 128 nodes have 64 MiB, and 8 GiB at most.
//
// Trust: only processes of the same user are let in. Whatever they write, a link reads nothing
// outside of its memory: one that writes what cannot be is cut off, and counted as RxMalformed. But
// a frame that was received lies in memory that its sender can still write, and one that fills the
// eventfds that it has holds up wake-ups for as long as it is there. Where processes of the same
// user are not trusted, who could end or trace this one as well, use another link.
//
// Source: SCMD (the network inside a chassis, beside the one between them); docs/decisions/014 has
// the reasons and the measurements.
package shm

import "github.com/rawlane/rawlane/transport"

// Config of a link. The zero value is right for a link that stands alone.
type Config struct {
	// Wire is the link for the stations that are not on this host. The link that Open returns
	// takes it, and closes it. If Open fails it stays the caller's.
	Wire transport.Link
	// MAC is the address of a link that stands alone. Zero is one by chance, locally administered:
	// not for a node that is to meet the others again once its process has begun anew, which takes
	// OpenNode.
	MAC transport.MAC
	// MTU of a link that stands alone, in bytes. 0 means DefaultMTU.
	MTU int
	// RingBytes is how much a sender's frames may take at one receiver, rounded up to a power of
	// two. 0 means as much as is needed for the MTU: more than thirty of the longest frames.
	RingBytes int
	// Dir is the folder in which the links of a user meet; links with different ones do not. ""
	// means $RAWLANE_SHM_DIR, or rawlane in $XDG_RUNTIME_DIR if that is a folder of the user's, or
	// else rawlane-UID in the folder for temporary files. It is made if it is not there; it has to
	// be the user's own, with mode 0700. A socket's path in it, with the segment's name, the
	// kernel's and the link's, has 107 bytes at most.
	Dir string
}

// Limits of a Config.
const (
	// DefaultMTU is that of jumbo frames. The largest one costs as many times the memory.
	DefaultMTU = 9000
	MaxMTU     = 65535
	// MaxRingBytes bounds Config.RingBytes.
	MaxRingBytes = 64 << 20
	// MaxStations is how many others a link reaches through memory.
	MaxStations = 448
)
