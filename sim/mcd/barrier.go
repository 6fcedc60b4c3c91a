package mcd

import (
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/sim"
)

// iterations is how many barriers a rank enters (MCD §4.3).
const iterations = 100

// rank is a program that enters one barrier after the other.
//
// Source: MCD §4.3, figure 4.
type rank struct {
	host      *host
	steps     []schedule.Step
	send      func(nic int, m message)
	number    int
	at        int // the step
	here      map[message]bool
	iteration int
	entered   monotime.Time
	took      time.Duration // in all barriers so far
}

func (r *rank) enter() {
	r.entered, r.at = r.host.queue.Now(), 0
	r.proceed()
}

// proceed does the next step if its messages are there.
func (r *rank) proceed() {
	if r.at == len(r.steps) {
		r.leave()
		return
	}
	step := &r.steps[r.at]
	for _, await := range step.Await {
		if !r.here[r.awaited(await)] {
			return
		}
	}
	for _, await := range step.Await {
		delete(r.here, r.awaited(await))
	}
	r.at++
	if len(step.Await) == 0 {
		r.notify(step.Notify)
		return
	}
	r.host.work(r.host.model.Step, func() { r.notify(step.Notify) })
}

func (r *rank) awaited(a schedule.Receive) message {
	return message{iteration: r.iteration, from: a.From, to: r.number, label: a.Label}
}

// notify sends one message after the other, and goes on to the next step.
func (r *rank) notify(sends []schedule.Send) {
	if len(sends) == 0 {
		r.proceed()
		return
	}
	r.host.work(r.host.model.Send, func() {
		s := sends[0]
		r.send(s.NIC, message{iteration: r.iteration, from: r.number, to: s.To, label: s.Label})
		r.notify(sends[1:])
	})
}

// leave ends a barrier.
func (r *rank) leave() {
	r.took += r.host.queue.Now().Sub(r.entered)
	if r.iteration++; r.iteration < iterations {
		r.host.work(r.host.model.Loop, r.enter)
	}
}

// deliver has a message arrive in the program's memory.
func (r *rank) deliver(m message) {
	m.to = r.number
	r.here[m] = true
	if r.host.task.done == nil {
		r.proceed()
	}
}

// Switched returns the mean time of a barrier, of all ranks and 100 barriers, with a switch for
// each network that the algorithm has. All ranks begin at once.
func (m *Model) Switched(a schedule.Algorithm, ranks int) time.Duration {
	return m.run(a, ranks, func(q *sim.Queue, s stations) network { return newSwitched(q, ranks, m.wire(), s) })
}

// Repeated is Switched with a hub for each network. The seed is of backoffs.
func (m *Model) Repeated(a schedule.Algorithm, ranks int, seed uint64) time.Duration {
	random := prng.Source(seed)
	return m.run(a, ranks, func(q *sim.Queue, s stations) network { return newRepeated(q, ranks, m, random.Next(), s) })
}

// run runs the barriers on networks that connect makes.
func (m *Model) run(a schedule.Algorithm, ranks int, connect func(*sim.Queue, stations) network) time.Duration {
	var (
		q        sim.Queue
		networks []network
		all      = make([]*rank, ranks)
	)
	send := func(nic int, msg message) { q.After(m.DMA, func() { networks[nic].send(msg) }) }
	count := 0
	for i := range all {
		all[i] = &rank{
			host: &host{model: m, queue: &q}, steps: a.Steps(i, ranks), send: send, number: i,
			here: make(map[message]bool),
		}
		count = max(count, schedule.Networks(all[i].steps))
	}
	for nic := range count {
		networks = append(networks, connect(&q, stations{
			sent: func(station int) { all[station].host.interrupt(nic, m.Sent, func() {}) },
			arrive: func(station int, msg message) {
				to := all[station]
				q.After(m.DMA, func() { to.host.interrupt(nic, m.Receive, func() { to.deliver(msg) }) })
			},
		}))
	}
	for _, r := range all {
		r.host.nics = make([][]event, count)
		r.enter()
	}
	for q.Step() {
	}
	var took time.Duration
	for _, r := range all {
		took += r.took
	}
	return took / time.Duration(ranks*iterations)
}
