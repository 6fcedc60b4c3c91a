package mcd

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
)

// host is a processor, which does one thing at a time, and NICs that interrupt it.
type host struct {
	model *Model
	queue *sim.Queue
	nics  [][]event // what each has to tell

	handling bool // an interrupt
	task     task
}

// event is that a message has come, or that a frame was sent.
type event struct {
	cost   time.Duration
	handle func()
}

// task is what the program does, and interrupts hold up.
type task struct {
	done  func()        // nil: the program waits for messages
	left  time.Duration // while an interrupt is handled
	end   monotime.Time // otherwise
	start int           // counts: a start whose task was held up since has no end
}

// work has the program do something that takes so long, and then the next thing.
func (h *host) work(d time.Duration, done func()) {
	h.task.left, h.task.done = d, done
	if !h.handling {
		h.resume()
	}
}

// resume has the program go on.
func (h *host) resume() {
	if h.task.done == nil {
		return
	}
	h.task.start++
	start := h.task.start
	h.task.end = h.queue.Now().Add(h.task.left)
	h.queue.At(h.task.end, func() {
		if start == h.task.start {
			done := h.task.done
			h.task.done = nil
			done()
		}
	})
}

// pause has the program wait for the end of an interrupt.
func (h *host) pause() {
	h.task.start++
	h.task.left = h.task.end.Sub(h.queue.Now())
}

// interrupt has a NIC tell that something has come, or was sent. While a NIC's interrupt is
// handled, what the NIC has more to tell is handled with it, and what others have waits.
//
// Source: MCD §5.2.
func (h *host) interrupt(nic int, cost time.Duration, handle func()) {
	h.nics[nic] = append(h.nics[nic], event{cost, handle})
	if !h.handling {
		h.handling = true
		h.pause()
		h.queue.After(h.model.Interrupt, func() { h.handle(nic) })
	}
}

// handle takes what a NIC has to tell, one after the other, then what the next NIC has.
func (h *host) handle(nic int) {
	if waiting := h.nics[nic]; len(waiting) > 0 {
		h.nics[nic] = waiting[1:]
		h.queue.After(waiting[0].cost, func() {
			waiting[0].handle()
			h.handle(nic)
		})
		return
	}
	for other := range h.nics {
		if len(h.nics[other]) > 0 {
			h.queue.After(h.model.Interrupt, func() { h.handle(other) })
			return
		}
	}
	h.handling = false
	h.resume()
}
