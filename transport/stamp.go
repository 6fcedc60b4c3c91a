package transport

import "time"

// Stamper is a link that says when frames pass its network driver. It shows where the time of a
// message goes.
type Stamper interface {
	// StampFrames switches stamps on or off. Each frame then costs the kernel some 0.5 µs more.
	// Packet and udp links have the NIC stamp, too, where its driver tells its setting and offers
	// stamps of all frames; that takes CAP_NET_ADMIN, and else is left out. The NIC has its setting
	// back when stamps are switched off or the link is closed, unless another program has changed
	// it meanwhile; after a kill of the process, "hwstamp_ctl -i NAME -t 0 -r 0" switches it off.
	// Links of one NIC, of any programs, share its setting: the one that has changed it undoes
	// that, and the others have no more hardware stamps then, until they are switched on again.
	StampFrames(on bool) error
	// SentStamps hands out the stamps of sent frames, in the order in which they were made, without
	// waiting, and returns how many. Call it after Send, and after a Wait that has ended though
	// nothing came: those that nobody takes use up room until the kernel drops more of them, on a
	// udp link that of what is received, and a link may end each Wait as long as there are any.
	SentStamps(stamps []SentStamp) int
	// ReceivedStamp returns the stamp of the i-th frame of the last Poll; the zero Stamp if it has
	// none. Only the polling goroutine may call it.
	ReceivedStamp(i int) Stamp
}

// Stamp is when a frame passed.
type Stamp struct {
	Software time.Time // the kernel's driver, by the clock of this host; zero if it has none
	Hardware time.Time // the NIC, by a clock of its own; likewise
}

// SentStamp is the stamp of a frame that was sent. A frame may have two: the NIC's comes later.
type SentStamp struct {
	// Frame is the number of the frame, from 0 on since StampFrames(true), among those that the
	// kernel stamps. Frames of ring and packet links that go as a train have neither stamp nor
	// number; a train of a udp link has one. A frame that the kernel refused may have a number.
	Frame uint32
	Stamp
}
