package mpi

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
)

// Sentinels: test with errors.Is.
var (
	// ErrClosed: the world was closed, or its endpoint. Is mcd.ErrClosed and net.ErrClosed.
	ErrClosed = fmt.Errorf("world: %w", mcd.ErrClosed)
	// ErrTruncate: the message is longer than the receive's memory, which has its beginning, or
	// nothing. MPI_ERR_TRUNCATE.
	ErrTruncate = errors.New("message is longer than the receive's memory")
	// ErrRank: there is no such rank. MPI_ERR_RANK.
	ErrRank = errors.New("no such rank")
	// ErrTag: the tag is out of range. MPI_ERR_TAG.
	ErrTag = errors.New("tag out of range")
	// ErrProcessFailed: the process is down. A *ProcessError names it. MPI_ERR_PROC_FAILED.
	ErrProcessFailed = errors.New("process failed")
	// ErrRevoked: the communicator was revoked, here or elsewhere. MPI_ERR_REVOKED.
	ErrRevoked = errors.New("communicator was revoked")
	// ErrCancelled: the receive was cancelled.
	ErrCancelled = errors.New("cancelled")
	// ErrActive: the request is not complete. MPI_ERR_REQUEST.
	ErrActive = errors.New("request is active")
	// ErrWindows: windows, and long messages that are under way or that nobody has waited for yet,
	// have lent all memory that they may: 32,767 pieces.
	ErrWindows = errors.New("too many windows and long messages")
	// ErrReceived: the message of a Mprobe was received before.
	ErrReceived = errors.New("message was received before")
	// ErrWithdrawn: the sender's context ended before its message was read, or it has got
	// ErrWindows; or the root of a multicast has failed before it; or a process has left the
	// collective operation, as it has failed there, or a function that was called in it has not
	// returned.
	ErrWithdrawn = errors.New("the sender has taken the message back")
	// ErrRange: the elements are not all in the rank's part of the window. MPI_ERR_RMA_RANGE.
	ErrRange = errors.New("out of the window's range")
	// ErrEpoch: no epoch, or another one, is open at the rank. MPI_ERR_RMA_SYNC.
	ErrEpoch = errors.New("not in such an epoch")
	// ErrFreed: the communicator was freed, or the window, here or at the rank. MPI_ERR_COMM,
	// MPI_ERR_WIN.
	ErrFreed = errors.New("it was freed")
	// ErrLayout: no such layout can be made, or it reaches beyond the slice. MPI_ERR_TYPE.
	ErrLayout = errors.New("layout of a message")
	// ErrOp: the update is none of such elements. MPI_ERR_OP.
	ErrOp = errors.New("no update of such elements")
)

// ofClosed returns ErrClosed for what lower layers say of an endpoint that was closed.
func ofClosed(err error) error {
	if errors.Is(err, mcd.ErrClosed) {
		return ErrClosed
	}
	return err
}

// errGone: the other process takes this one for down, or for one that began anew.
var errGone = errors.New("it has given this process up")

// errUntaken: the other process asks on and on, and takes no answers.
var errUntaken = fmt.Errorf("it has not taken %d answers", maxUntaken)

// errUnreturned: a wait did not return, as a function of another port's, which ran in it, has
// panicked or ended the goroutine.
var errUnreturned = errors.New("a wait has not returned, by a function that was called in it")

// What agreements say of a process.
var (
	errFound    = errors.New("another process has found it down")
	errExcluded = errors.New("the others have given this process up")
)

// ProcessError names a process that is down. It is ErrProcessFailed.
type ProcessError struct {
	Rank int   // in the world
	Err  error // a *memfifo.PeerDownError, or what else has ended the conversation
}

func (e *ProcessError) Error() string {
	return fmt.Sprintf("rank %d: %v: %v", e.Rank, ErrProcessFailed, e.Err)
}

// Unwrap returns the cause.
func (e *ProcessError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrProcessFailed) hold.
func (e *ProcessError) Is(target error) bool { return target == ErrProcessFailed }
