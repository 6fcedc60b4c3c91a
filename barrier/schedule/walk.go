package schedule

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/timewheel"
)

// walk is a barrier in the model's time. Ranks have processors of their own, or take turns on
// shared ones: a rank with work queues for a core, and keeps it while its messages come quickly
// enough.
type walk struct {
	nics   []LogP
	ranks  []walker
	cores  []core
	queue  []int // ranks with work, without a core
	exits  []time.Duration
	record bool
	events []Event

	coming timewheel.Wheel[arrival]
}

// walker is one rank.
type walker struct {
	steps   []Step
	at      int // the step in which it waits
	met     int // how many of its first awaits are here: they are not looked up again
	entered bool
	here    map[Receive]bool // the messages that came, of all steps
	inbox   []arrival
	active  bool            // on a core, or in the queue for one
	sends   []time.Duration // by NIC: when the next send may begin
	handles []time.Duration // likewise for receives
}

// core is a processor.
type core struct {
	rank int // the last to run, or none
	busy bool
}

// arrival is a rank's entry, a message for a rank, or the end of a core's work.
type arrival struct {
	kind  arrivalKind
	index int // the rank, or the core
	event Event
}

type arrivalKind uint8

const (
	entry arrivalKind = iota
	flight
	coreFree
)

func newWalk(a Algorithm, size int, nics []LogP) *walk {
	w := &walk{nics: nics, ranks: make([]walker, size), exits: make([]time.Duration, size)}
	networks := len(nics)
	for rank := range w.ranks {
		r := &w.ranks[rank]
		r.steps = a.Steps(rank, size)
		r.here = make(map[Receive]bool)
		for _, s := range r.steps {
			for _, t := range s.Notify {
				networks = max(networks, t.NIC+1)
			}
		}
	}
	for rank := range w.ranks {
		w.ranks[rank].sends = make([]time.Duration, networks)
		w.ranks[rank].handles = make([]time.Duration, networks)
		w.push(0, arrival{kind: entry, index: rank})
	}
	cores := size
	if w.shared() {
		cores = nics[0].Cores
	}
	for range cores {
		w.cores = append(w.cores, core{rank: none})
	}
	return w
}

func (w *walk) push(at time.Duration, a arrival) { w.coming.Push(monotime.At(at), a) }

func (w *walk) shared() bool { return w.nics[0].Cores > 0 && w.nics[0].Cores < len(w.ranks) }

func (w *walk) nic(i int) *LogP { return &w.nics[min(i, len(w.nics)-1)] }

func (w *walk) run() {
	for w.coming.Len() > 0 {
		at, a := w.coming.Pop()
		if a.kind == coreFree {
			w.free(at.Since(), a.index)
		} else {
			w.enqueue(a)
		}
		w.dispatch(at.Since())
	}
}

func (w *walk) enqueue(a arrival) {
	r := &w.ranks[a.index]
	r.inbox = append(r.inbox, a)
	if !r.active {
		r.active = true
		w.queue = append(w.queue, a.index)
	}
}

// free has a core go on with its rank, if that has more work.
func (w *walk) free(now time.Duration, c int) {
	rank := w.cores[c].rank
	w.cores[c].busy = false
	if len(w.ranks[rank].inbox) > 0 {
		w.work(now, c, rank)
		return
	}
	w.ranks[rank].active = false
}

// dispatch gives idle cores to ranks with work: each rank's own, or of shared ones the one that
// ran the rank last, or any.
func (w *walk) dispatch(now time.Duration) {
	for len(w.queue) > 0 {
		rank := w.queue[0]
		c := rank
		if w.shared() {
			c = w.idle(rank)
		}
		if c == none {
			return
		}
		w.queue = w.queue[1:]
		w.work(now, c, rank)
	}
}

func (w *walk) idle(rank int) int {
	found := none
	for c := range w.cores {
		if w.cores[c].busy {
			continue
		}
		if found == none || w.cores[c].rank == rank {
			found = c
		}
	}
	return found
}

// work has a rank handle the first arrival, and send the notifies of the steps that this ends.
func (w *walk) work(now time.Duration, c, rank int) {
	if w.shared() && w.cores[c].rank != rank {
		now += w.nics[0].Switch
	}
	w.cores[c] = core{rank: rank, busy: true}
	r := &w.ranks[rank]
	a := r.inbox[0]
	r.inbox = r.inbox[1:]
	if a.kind == entry {
		r.entered = true
	} else {
		e := a.event
		begun := max(now, r.handles[e.NIC])
		r.handles[e.NIC] = begun + w.nic(e.NIC).Gap
		now = begun + w.nic(e.NIC).Or
		r.here[Receive{e.From, e.Label}] = true
		if w.record {
			e.Handled = now
			w.events = append(w.events, e)
		}
	}
	now = w.progress(now, rank)
	w.push(now, arrival{kind: coreFree, index: c})
}

// progress sends the notifies of each step whose awaits are here.
func (w *walk) progress(now time.Duration, rank int) time.Duration {
	r := &w.ranks[rank]
	for r.entered && r.at < len(r.steps) {
		s := &r.steps[r.at]
		for ; r.met < len(s.Await); r.met++ {
			if !r.here[s.Await[r.met]] {
				return now
			}
		}
		for _, t := range s.Notify {
			now = w.send(now, rank, t)
		}
		r.at++
		r.met = 0
	}
	if r.entered && w.exits[rank] == 0 {
		w.exits[rank] = now
	}
	return now
}

func (w *walk) send(now time.Duration, rank int, t Send) time.Duration {
	p, r := w.nic(t.NIC), &w.ranks[rank]
	e := Event{From: rank, NIC: t.NIC, Label: t.Label, Begun: max(now, r.sends[t.NIC])}
	r.sends[t.NIC] = e.Begun + p.Gap
	e.Left = e.Begun + p.Os
	if t.To == All {
		e.Left += time.Duration(len(w.ranks)-2) * p.Copy
	}
	e.Arrived = e.Left + p.L
	for to := range audience(rank, t.To, len(w.ranks)) {
		e.To = to
		w.push(e.Arrived, arrival{kind: flight, index: to, event: e})
	}
	return e.Left
}
