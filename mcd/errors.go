package mcd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/rawlane/rawlane/transport"
)

// Sentinels: test with errors.Is.
var (
	// ErrClosed: the endpoint or the port was closed. Is net.ErrClosed.
	ErrClosed = fmt.Errorf("port or endpoint closed: %w", net.ErrClosed)
	// ErrPortBusy: the port has an owner. A *PortBusyError names the process, where the system
	// tells.
	ErrPortBusy = errors.New("port busy")
	// ErrUnknownNode: the node table has no such node.
	ErrUnknownNode = errors.New("unknown node")
	// ErrConflict: two nodes of one number, or one address for two nodes. A *ConflictError names
	// them.
	ErrConflict = errors.New("conflict in the node table")
	// ErrTooLarge: a message is longer than MaxPayload. A *transport.SizeError carries both sizes.
	ErrTooLarge = transport.ErrTooLarge
	// ErrSelf: a node cannot send to itself.
	ErrSelf = errors.New("node cannot send to itself")
	// ErrNotMember: the group was left more often than joined.
	ErrNotMember = errors.New("not a member of the group")
	// ErrPosted: the descriptor is posted already.
	ErrPosted = errors.New("descriptor is in use")
	// ErrNoAnswer: a probe had no reply. A *NoAnswerError names the path, and says for how long.
	ErrNoAnswer = errors.New("no answer")
	// ErrKeyMismatch: nodes have different keys, or one of them has none. See KeyMismatch.
	ErrKeyMismatch = errors.New("the keys differ")
	// ErrNoKeys: the endpoint was opened without keys.
	ErrNoKeys = errors.New("the endpoint was opened without keys")
	// ErrHandled: the port has a Receive function, which gets all its messages.
	ErrHandled = errors.New("port has a Receive function")
)

// errNobody: a destination was forgotten.
var errNobody = errors.New("send to nobody: the message has no destination (make one with To, ToGroup or ToAll)")

// errExhausted: no frame is sealed with a counter that was used.
var errExhausted = errors.New("endpoint has sent 2^63 frames with its keys (close it and open another)")

// PortBusyError names the process that owns a port. It is ErrPortBusy.
type PortBusyError struct {
	Port PortID
	PID  int // the owning process; 0 if the system does not tell
}

func (e *PortBusyError) Error() string {
	switch e.PID {
	case 0:
		return fmt.Sprintf("port %d: busy: another process owns it", e.Port)
	case os.Getpid():
		return fmt.Sprintf("port %d: busy: this process owns it", e.Port)
	}
	return fmt.Sprintf("port %d: busy: process %d owns it", e.Port, e.PID)
}

// Is makes errors.Is(err, ErrPortBusy) hold.
func (e *PortBusyError) Is(target error) bool { return target == ErrPortBusy }

// ConflictError names two entries of a node table that exclude each other. It is ErrConflict.
type ConflictError struct{ A, B Node }

func (e *ConflictError) Error() string {
	if e.A.ID == e.B.ID {
		return fmt.Sprintf("node %d: two of one number, with MAC %s and MAC %s (give each a number of its own)",
			e.A.ID, e.A.macs(), e.B.macs())
	}
	return fmt.Sprintf("nodes %d and %d: one address for both: MAC %s and MAC %s",
		e.A.ID, e.B.ID, e.A.macs(), e.B.macs())
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// ShortBufferError says that a message of Size bytes met a buffer of Len. Its beginning is in the
// buffer, the rest is lost. It is io.ErrShortBuffer.
type ShortBufferError struct{ Size, Len int }

func (e *ShortBufferError) Error() string {
	return fmt.Sprintf("short buffer: message of %d bytes, room for %d", e.Size, e.Len)
}

// Is makes errors.Is(err, io.ErrShortBuffer) hold.
func (e *ShortBufferError) Is(target error) bool { return target == io.ErrShortBuffer }
