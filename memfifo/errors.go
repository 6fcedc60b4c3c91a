package memfifo

import (
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// Sentinels: test with errors.Is.
var (
	// ErrAccess: the owner has refused an operation. An *AccessError says why.
	ErrAccess = errors.New("access refused")
	// ErrPeerDown: a node did not answer, has left, or has restarted. A *PeerDownError names it.
	ErrPeerDown = errors.New("peer down")
	// ErrFull: the FIFO is full, and TryPush does not wait.
	ErrFull = errors.New("FIFO full")
	// ErrBusy: there is no room for a record now, and PostPush does not wait.
	ErrBusy = errors.New("no room in the connection now")
	// ErrManyParcels: a peer has MaxParcels under way that it has not acknowledged, or as many
	// PostedPuts that are not sent.
	ErrManyParcels = errors.New("too many parcels under way")
	// ErrClosed: the domain, its endpoint, the window or the FIFO was closed. Is mcd.ErrClosed and
	// net.ErrClosed.
	ErrClosed error = closedError{}
	// ErrTooLarge: a record is longer than MaxRecord, or, for TryPush, than a frame; or a Get than
	// 2 GB.
	ErrTooLarge = errors.New("too large")
	// ErrTaken: the id is taken by another window, or FIFO, of this domain.
	ErrTaken = errors.New("id is taken")
	// ErrAlignment: an atomic operation on an address that is not a multiple of 8.
	ErrAlignment = errors.New("not aligned to 8 bytes")
)

type closedError struct{}

func (closedError) Error() string { return "closed (the window or FIFO, the domain, or its endpoint)" }

// Unwrap makes errors.Is(err, mcd.ErrClosed) hold.
func (closedError) Unwrap() error { return mcd.ErrClosed }

// Refusal is why an owner refuses an operation.
type Refusal uint8

// The refusals.
const (
	NoSuchID   Refusal = iota + 1 // no window or FIFO has that id, or not any more
	WrongKey                      // the secret is another one
	OutOfRange                    // not all of it is inside of the window; a record is longer than the FIFO takes
	NoRight                       // the window does not allow it
	Misaligned                    // an atomic operation on an address that is not a multiple of 8
	Full                          // TryPush: no room now
	refusals
)

// String names r.
func (r Refusal) String() string {
	return [...]string{
		"?", "no such id (or revoked)", "wrong key", "out of range", "no right", "not aligned to 8 bytes", "full",
	}[min(r, refusals)%refusals]
}

// AccessError is an operation that the owner has refused. Nothing of it was written; of a Put that
// takes several frames, parts that are inside of the window may have been. It is ErrAccess.
type AccessError struct {
	Node   mcd.NodeID
	ID     uint16
	Reason Refusal
	Count  int // how many were refused since the last Flush; the others may be of another kind
}

func (e *AccessError) Error() string {
	s := fmt.Sprintf("node %d, id %d: access refused: %v", e.Node, e.ID, e.Reason)
	if e.Count > 1 {
		s += fmt.Sprintf(" (the first of %d)", e.Count)
	}
	return s
}

// Is makes errors.Is(err, ErrAccess) hold.
func (e *AccessError) Is(target error) bool { return target == ErrAccess }

// BatchError says how far PushBatch or PutV has come.
type BatchError struct {
	Done int   // how many are under way: those before the one that failed
	Err  error // why that one failed
}

func (e *BatchError) Error() string { return e.Err.Error() }

func (e *BatchError) Unwrap() error { return e.Err }

// Reason is why a peer is down.
type Reason uint8

// The reasons.
const (
	Silent    Reason = iota + 1 // it has not answered for Config.PeerTimeout
	Left                        // it has closed its domain
	Restarted                   // it has another domain than before
	DataLost                    // it answers, but no data has reached it for Config.PeerTimeout
)

// String names r.
func (r Reason) String() string {
	return [...]string{"?", "silent", "left", "restarted", "data lost", "?"}[min(r, DataLost+1)]
}

// PeerDownError names a node that did not answer, has left, or has restarted. Of what was under way
// to it, some may have been done. It is ErrPeerDown.
type PeerDownError struct {
	Node    mcd.NodeID
	Reason  Reason
	Timeout time.Duration // if Silent or DataLost: Config.PeerTimeout
	Lost    bool          // something without a reply was not acknowledged, or something was not sent
	NotSent error         // if Silent or DataLost: why the last frame to it was not sent, or cannot have come there
}

func (e *PeerDownError) Error() string {
	if e.NotSent != nil {
		return fmt.Sprintf("node %d: what was under way may be lost, as frames to it cannot be sent: %v",
			e.Node, e.NotSent)
	}
	switch e.Reason {
	case Left:
		return fmt.Sprintf("node %d has left: what was under way may be lost "+
			"(flush, and meet in a barrier, before a node closes its domain)", e.Node)
	case Restarted:
		return fmt.Sprintf("node %d has restarted: what was under way is lost (get its new keys)", e.Node)
	case DataLost:
		return fmt.Sprintf("node %d answers, but no data has reached it for %v: what was under way is lost "+
			"(a switch or link on the path drops long frames: compare the MTUs)", e.Node, e.Timeout)
	}
	return fmt.Sprintf("node %d has not answered for %v: what was under way may be lost", e.Node, e.Timeout)
}

// Is makes errors.Is(err, ErrPeerDown) hold.
func (e *PeerDownError) Is(target error) bool { return target == ErrPeerDown }
