package xdp

import (
	"github.com/rawlane/rawlane/internal/xsk"
)

// queue is a receive queue of the interface, with its socket.
type queue struct {
	socket *xsk.Socket
	taken  []uint64 // chunks that Poll has handed out
	viewed bool     // Poll has handed out any
	enough int      // as many are given back together
}

// release gives the frames that were taken back to the kernel: several at a time, as the kernel has
// more to go on with.
func (q *queue) release() {
	if len(q.taken) >= q.enough {
		for _, chunk := range q.taken {
			q.socket.Fill.Put(chunk)
		}
		q.socket.Fill.Submit()
		q.taken = q.taken[:0]
	}
	if q.socket.Fill.NeedWakeup() { // a zero-copy NIC has run out of memory
		q.socket.WakeReceive()
	}
}
