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
	nics   []LogP // between hosts, or between all ranks if these have none
	ranks  []walker
	hosts  []walkHost // one, if the shape is not known
	cores  []core
	exits  []time.Duration
	record bool
	events []Event

	coming timewheel.Wheel[arrival]
}

// none in place of a rank or a core is no one.
const none = -1

// walkHost is processors that ranks share, or have one each.
type walkHost struct {
	local       *LogP // costs between its ranks; nil: those of the networks
	first, last int   // its cores, if they are shared: last is not among them
	shared      bool
	turn        time.Duration // of a shared core, from one rank to another
	queue       []int         // ranks with work, without a core
	ranks       int
}

// walker is one rank.
type walker struct {
	host    int
	own     int // its core, if it has one of its own
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
	s := Shape{Of: make([]int, size), Hosts: []Host{{Cores: nics[0].Cores}}}
	w := newWalkOn(a, &s, nics)
	w.hosts[0].local = nil
	w.hosts[0].turn = nics[0].Switch
	return w
}

// newWalkOn is newWalk on hosts, between which messages cost what they do on the networks.
func newWalkOn(a Algorithm, s *Shape, nics []LogP) *walk {
	size := len(s.Of)
	w := &walk{nics: nics, ranks: make([]walker, size), exits: make([]time.Duration, size)}
	networks := len(nics)
	for rank := range w.ranks {
		r := &w.ranks[rank]
		r.steps = a.Steps(rank, size)
		r.here = make(map[Receive]bool)
		networks = max(networks, Networks(r.steps))
	}
	for rank := range w.ranks {
		w.ranks[rank].sends = make([]time.Duration, networks)
		w.ranks[rank].handles = make([]time.Duration, networks)
		w.push(0, arrival{kind: entry, index: rank})
	}
	w.makeHosts(s)
	return w
}

// makeHosts has the ranks of a host share its cores, if these are fewer.
func (w *walk) makeHosts(s *Shape) {
	w.hosts = make([]walkHost, len(s.Hosts))
	for rank, h := range s.Of {
		w.ranks[rank].host = h
		w.hosts[h].ranks++
	}
	for i := range w.hosts {
		h, of := &w.hosts[i], &s.Hosts[i]
		h.local, h.turn = &of.Local, of.Local.Switch
		if h.shared = of.Cores > 0 && of.Cores < h.ranks; h.shared {
			h.first, h.last = len(w.cores), len(w.cores)+of.Cores
			w.addCores(of.Cores)
		}
	}
	for rank := range w.ranks {
		if r := &w.ranks[rank]; !w.hosts[r.host].shared {
			r.own = len(w.cores)
			w.addCores(1)
		}
	}
}

func (w *walk) addCores(n int) {
	for range n {
		w.cores = append(w.cores, core{rank: none})
	}
}

func (w *walk) push(at time.Duration, a arrival) { w.coming.Push(monotime.At(at), a) }

func (w *walk) hostOf(rank int) *walkHost { return &w.hosts[w.ranks[rank].host] }

// cost is that of a message between two ranks by a network.
func (w *walk) cost(from, to, nic int) *LogP {
	if from, to := w.ranks[from].host, w.ranks[to].host; from == to && w.hosts[from].local != nil {
		return w.hosts[from].local
	}
	return w.nic(nic)
}

func (w *walk) nic(i int) *LogP { return &w.nics[min(i, len(w.nics)-1)] }

func (w *walk) run() {
	for w.coming.Len() > 0 {
		at, a := w.coming.Pop()
		var h int
		if a.kind == coreFree {
			h = w.ranks[w.cores[a.index].rank].host
			w.free(at.Since(), a.index)
		} else {
			h = w.ranks[a.index].host
			w.enqueue(a)
		}
		w.dispatch(at.Since(), &w.hosts[h])
	}
}

func (w *walk) enqueue(a arrival) {
	r := &w.ranks[a.index]
	r.inbox = append(r.inbox, a)
	if !r.active {
		r.active = true
		h := &w.hosts[r.host]
		h.queue = append(h.queue, a.index)
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

// dispatch gives a host's idle cores to ranks with work: each rank's own, or of shared ones the one
// that ran the rank last, or any.
func (w *walk) dispatch(now time.Duration, h *walkHost) {
	for len(h.queue) > 0 {
		rank := h.queue[0]
		c := w.ranks[rank].own
		if h.shared {
			c = w.idle(rank, h)
		}
		if c == none {
			return
		}
		h.queue = h.queue[1:]
		w.work(now, c, rank)
	}
}

func (w *walk) idle(rank int, h *walkHost) int {
	found := none
	for c := h.first; c < h.last; c++ {
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
	if h := w.hostOf(rank); h.shared && w.cores[c].rank != rank {
		now += h.turn
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
		p := w.cost(e.From, rank, e.NIC)
		r.handles[e.NIC] = begun + p.Gap
		now = begun + p.Or
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
	r := &w.ranks[rank]
	p := w.nic(t.NIC)
	if t.To != All {
		p = w.cost(rank, t.To, t.NIC)
	} else if h := w.hostOf(rank); h.local != nil && h.ranks == len(w.ranks) {
		p = h.local
	}
	e := Event{From: rank, NIC: t.NIC, Label: t.Label, Begun: max(now, r.sends[t.NIC])}
	r.sends[t.NIC] = e.Begun + p.Gap
	e.Left = e.Begun + p.Os
	if t.To == All {
		e.Left += w.copies(rank, p)
	}
	for to := range audience(rank, t.To, len(w.ranks)) {
		e.To = to
		e.Arrived = e.Left + w.cost(rank, to, t.NIC).L
		w.push(e.Arrived, arrival{kind: flight, index: to, event: e})
	}
	return e.Left
}

// copies is what a multicast by p costs its sender more than one message: a copy for each receiver
// after the first, or for each of its own host, if it goes to others, too.
func (w *walk) copies(rank int, p *LogP) time.Duration {
	h := w.hostOf(rank)
	if h.local == nil || p == h.local {
		return time.Duration(len(w.ranks)-2) * p.Copy
	}
	return time.Duration(h.ranks-1) * h.local.Copy
}
