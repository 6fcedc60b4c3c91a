package bench

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// maxRecords bounds what node 1 keeps of a turn of --breakdown: its messages, and those that warm
// up.
const maxRecords = 1 << 18

// turnRecords is what node 1 notes of the messages that it echoes, while node 0 asks for it.
type turnRecords struct {
	link *passages // nil without --breakdown
	on   atomic.Bool

	mu     sync.Mutex // guards what follows
	asked  string     // the last askNote
	failed string     // and why it failed
	all    []byte
}

// answer answers a request about records. An empty answer to askNote says that it is done, another
// one why not.
func (r *turnRecords) answer(request []byte) (answer []byte, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request[0] == askRecords {
		return r.all[:len(r.all):len(r.all)], true
	}
	if len(request) != 3 {
		return nil, false
	}
	if r.link == nil {
		return []byte("gives no stamps (give --breakdown there, too)"), true
	}
	if string(request) != r.asked { // else it was repeated
		on := request[1] != 0
		r.asked, r.failed, r.all = string(request), "", r.all[:0]
		if err := r.link.note(on); err != nil {
			r.failed = err.Error()
		}
		r.on.Store(on && r.failed == "")
	}
	return []byte(r.failed), true
}

// begin is called when a message has come and is about to be echoed.
func (r *turnRecords) begin() (noted bool, called time.Time) {
	if !r.on.Load() {
		return false, called
	}
	return true, time.Now()
}

// add notes the turn of a message that was echoed.
func (r *turnRecords) add(called time.Time, message []byte) {
	var t turn
	sent, _ := r.link.take()
	if len(message) < 4 || !t.arrived(sent.after, called) || !t.departed(called, sent) {
		return
	}
	if from, to := sent.after.stamp.Hardware, sent.stamp.Hardware; !from.IsZero() && !to.IsZero() {
		t.hardware = to.Sub(from)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < maxRecords*recordLen {
		r.all = appendRecord(r.all, binary.BigEndian.Uint32(message), t)
	}
}
