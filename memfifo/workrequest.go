package memfifo

import (
	"bytes"

	"github.com/rawlane/rawlane/internal/list"
	"github.com/rawlane/rawlane/mcd"
)

// request says what is to be done to a peer's memory, or what is left of that.
type request struct {
	op       opcode
	notify   Notify // put
	begun    bool   // put, push: a part is in a frame
	key      Key
	off      uint64
	data     []byte      // put, push, tryPush: what is to be sent
	total    int         // push: the record's length
	wanted   func() bool // push: asked before it begins, if set
	operand  uint64      // swap, compareSwap: the new value; fetchAdd: the summand
	expected uint64      // compareSwap
	buf      []byte      // get: where the reply goes
}

// workRequest is an operation under way to a peer. It has two completions, as in verbs and UCX: the
// local one says that the caller may reuse its argument, the remote one that the operation is done
// at the peer.
//
//	state    event                               next    completes
//	idle     its caller posts it                 queued  -
//	queued   its last part is in a frame         framed  local
//	queued   its caller gives up                 idle    -; a push that has begun goes on
//	framed   its reply, or for a parcel the ack  done    remote
//	any      the peer is lost, domain closed     done    both, with the error
//
// Domain.mu guards it, except for the completions.
type workRequest struct {
	request
	peer      *peer
	state     requestState
	requestID uint32 // of an operation with a reply
	mark      uint32 // parcel: where its last frame ends in the lane; acknowledged once that is reached
	issued    uint64 // fence: what is in place when it is answered
	received  int    // get: bytes of buf that are here
	value     uint64

	local, remote             mcd.Completion
	signalLocal, signalRemote bool                   // the completion is, or may be, waited for
	detached                  bool                   // nobody waits: its end frees it
	node                      list.Node[workRequest] // in peer.queue or peer.unacked
	sent                      func(error) *PostedPut // of a posted put, behind which the queue has its push
	copied                    []byte                 // memory for a record that is sent without its caller
	nextUnused                *workRequest           // in pool.unused
}

type requestState uint8

const (
	idle requestState = iota
	queued
	framed
	done
)

// restart makes a work request ready to be queued.
func (wr *workRequest) restart() {
	wr.state, wr.received, wr.value = queued, 0, 0
	wr.signalLocal, wr.signalRemote, wr.detached = false, false, false
	if wr.op.HasReply() {
		wr.expectRemote()
	}
}

// expectLocal has the local completion be signalled. It resets the completion only here: most puts
// never wait.
func (wr *workRequest) expectLocal() {
	wr.local.Reset()
	wr.signalLocal = true
}

func (wr *workRequest) expectRemote() {
	wr.remote.Reset()
	wr.signalRemote = true
}

// isPartOfRecord reports whether it is a push that has begun: the rest of its record has to follow,
// or no other could.
func (wr *workRequest) isPartOfRecord() bool { return wr.begun && wr.op == opPush }

// isParcel reports whether it is a parcel's.
func (wr *workRequest) isParcel() bool { return wr.signalRemote && !wr.op.HasReply() }

// isLeft reports whether the call that has queued it may have returned: what its caller does next
// has to be behind it.
func (wr *workRequest) isLeft() bool { return wr.detached || wr.isParcel() }

// detach has it go on in the queue without its caller, who has the memory back.
func (wr *workRequest) detach() {
	wr.data, wr.signalLocal, wr.detached = bytes.Clone(wr.data), false, true
	wr.peer.left++
}

// setFramed notes that the caller may reuse its argument.
func (wr *workRequest) setFramed() {
	wr.state = framed
	if wr.signalLocal {
		wr.local.Complete(nil)
	}
	if wr.detached {
		wr.endDetached(nil)
	}
}

// endDetached ends a work request that nobody waits for.
func (wr *workRequest) endDetached(err error) {
	if wr.sent != nil {
		wr.peer.endPosted(wr, err)
	} else {
		wr.peer.d.freeRequest(wr)
	}
}

// complete ends a work request that is in no list any more. The last completion that somebody waits
// for is signalled at the very end: then the work request is the waiting goroutine's.
func (wr *workRequest) complete(err error) {
	local := wr.state == queued && wr.signalLocal
	remote, detached := wr.signalRemote, wr.detached
	wr.state = done
	if local {
		wr.local.Complete(err)
	}
	if remote {
		wr.remote.Complete(err)
	}
	if detached {
		wr.endDetached(err)
	}
}

// awaited returns the completion that the caller of an operation waits for.
func (wr *workRequest) awaited() *mcd.Completion {
	if wr.op.HasReply() {
		return &wr.remote
	}
	return &wr.local
}
