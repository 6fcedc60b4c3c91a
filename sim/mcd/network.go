package mcd

import (
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/internal/csmacd"
)

// message is a notify on its way. Those of other barriers have other iterations.
type message struct {
	iteration, from, to int
	label               uint8
}

// network carries a message at a time from each station. It calls sent when the last bit has left
// the station, and arrive at each receiver.
type network interface {
	send(m message)
}

// stations are what a network tells.
type stations struct {
	sent   func(station int)
	arrive func(station int, m message)
}

// receivers calls f for each of them.
func (m message) receivers(ranks int, f func(rank int)) {
	if m.to != schedule.All {
		f(m.to)
		return
	}
	for rank := range ranks {
		if rank != m.from {
			f(rank)
		}
	}
}

// switched is a switch: it has all of a frame before it sends it on. Both ways of a cable are used
// at once.
type switched struct {
	queue *sim.Queue
	stations
	wire     time.Duration
	up, down []time.Duration // until when the cables are busy
}

func newSwitched(q *sim.Queue, ranks int, wire time.Duration, s stations) *switched {
	return &switched{
		queue: q, stations: s, wire: wire, up: make([]time.Duration, ranks), down: make([]time.Duration, ranks),
	}
}

// occupy has a cable carry one more frame. It returns when that ends.
func (n *switched) occupy(until *time.Duration) monotime.Time {
	*until = max(*until, n.queue.Now().Since()) + n.wire
	return monotime.At(*until)
}

func (n *switched) send(m message) {
	n.queue.At(n.occupy(&n.up[m.from]), func() {
		n.sent(m.from)
		m.receivers(len(n.down), func(to int) {
			n.queue.At(n.occupy(&n.down[to]), func() { n.arrive(to, m) })
		})
	})
}

// repeated is a hub: all stations hear a frame, and send it one at a time.
type repeated struct {
	queue *sim.Queue
	stations
	wire, distance time.Duration
	hub            *csmacd.Hub
	waiting        [][]message     // by station
	ready          []time.Duration // since when: csmacd.Never if it has none
	decision       int             // the last that was scheduled
}

func newRepeated(q *sim.Queue, ranks int, m *Model, seed uint64, s stations) *repeated {
	n := &repeated{
		queue: q, stations: s, wire: m.wire(), distance: m.Distance, hub: csmacd.New(ranks, m.Distance, seed),
		waiting: make([][]message, ranks), ready: make([]time.Duration, ranks),
	}
	for i := range n.ready {
		n.ready[i] = csmacd.Never
	}
	return n
}

func (n *repeated) send(m message) {
	if n.waiting[m.from] = append(n.waiting[m.from], m); len(n.waiting[m.from]) == 1 {
		n.ready[m.from] = n.queue.Now().Since()
		n.contend()
	}
}

// contend has the station that begins first decide when all have heard it who has the hub.
func (n *repeated) contend() {
	first := n.hub.First(n.ready)
	if first == csmacd.Never {
		return
	}
	n.decision++
	decision := n.decision
	n.queue.At(monotime.At(first+n.distance), func() {
		if decision == n.decision {
			n.decide()
		}
	})
}

func (n *repeated) decide() {
	station, start, ok := n.hub.Contend(n.ready)
	if !ok {
		n.contend()
		return
	}
	end := start + n.wire
	n.hub.Carry(end)
	m := n.waiting[station][0]
	n.waiting[station] = n.waiting[station][1:]
	n.ready[station] = csmacd.Never
	if len(n.waiting[station]) > 0 {
		n.ready[station] = end
	}
	n.queue.At(monotime.At(end), func() { n.sent(station) })
	n.queue.At(monotime.At(end+n.distance), func() {
		m.receivers(len(n.ready), func(to int) { n.arrive(to, m) })
	})
	n.contend()
}
