package sim

import (
	"time"

	"github.com/rawlane/rawlane/internal/impair"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/prng"
)

// Config of a network. Source: LogP model; MCD §5.1.1 (o_s, L, o_r, gap).
type Config struct {
	Nodes, NICs int           // nodes 0 to Nodes-1, each with NICs 0 to NICs-1; NICs 0 means 1
	Os          time.Duration // of the sender's processor, per send
	L           time.Duration // from the end of Os to the receiver's NIC
	Or          time.Duration // of the receiver's processor, per message
	Gap         time.Duration // at least this between the starts of two sends of one NIC, or of two receives
	Faults      Faults
	Seed        uint64 // of the random generator
}

// Network joins nodes that send each other messages of type M. Messages are handed on as they are:
// the copies of a multicast or a duplicate share what M points to.
//
// Nodes and NICs out of range panic.
type Network[M any] struct {
	queue   *Queue
	config  Config
	deliver func(to, from, nic int, m M)

	nodes             []node[M]
	sendAt, receiveAt []monotime.Time // per node and NIC: the end of the gap; zero at first
	cuts              map[path]struct{}
	bursts            map[path]burst
	model             impair.Model
	rng               prng.Source
	count             Counters
	free              *task[M] // done, for reuse
}

// NewNetwork returns a network on q's time, with all nodes alive and idle. It calls deliver for
// each received message; deliver may call anything of the network and of the queue.
func NewNetwork[M any](q *Queue, cfg Config, deliver func(to, from, nic int, m M)) *Network[M] {
	cfg.NICs = max(cfg.NICs, 1)
	n := &Network[M]{
		queue: q, config: cfg, deliver: deliver,
		nodes:     make([]node[M], cfg.Nodes),
		sendAt:    make([]monotime.Time, cfg.Nodes*cfg.NICs),
		receiveAt: make([]monotime.Time, cfg.Nodes*cfg.NICs),
		cuts:      make(map[path]struct{}),
		bursts:    make(map[path]burst),
		rng:       prng.Source(cfg.Seed),
	}
	n.SetFaults(cfg.Faults)
	return n
}

// Send has from's processor send m to node to: it takes Os, once the processor is free and nic's
// gap is over, and then the frame leaves. A node may send to itself, at the same cost. A node that
// is down sends nothing.
func (n *Network[M]) Send(from, to, nic int, m M) {
	n.check(to, nic)
	n.send(unicast, from, to, nic, m)
}

// Multicast is one send that reaches every other node. Each copy has faults of its own.
func (n *Network[M]) Multicast(from, nic int, m M) {
	n.check(from, nic)
	n.send(multicast, from, from, nic, m)
}

func (n *Network[M]) send(k kind, from, to, nic int, m M) {
	if !n.nodes[from].down {
		n.enqueue(from, n.newTask(k, from, to, nic, m))
	}
}

func (n *Network[M]) check(node, nic int) {
	_ = n.nodes[node]
	if nic < 0 || nic >= n.config.NICs {
		panic("sim: no such NIC")
	}
}

// Work occupies the node's processor for d once it is free, then runs f. A node that is down does
// no work.
func (n *Network[M]) Work(node int, d time.Duration, f func()) {
	if n.nodes[node].down {
		return
	}
	var none M
	t := n.newTask(work, node, node, 0, none)
	t.cost, t.f = d, f
	n.enqueue(node, t)
}

// Pause suspends the node's processor for d from now, also in the middle of a task, which ends
// later by as much. Messages that arrive meanwhile wait. Of overlapping pauses, the last end
// counts.
func (n *Network[M]) Pause(node int, d time.Duration) {
	p, now := &n.nodes[node], n.queue.Now()
	from, until := latest(now, p.resume), now.Add(d)
	if p.down || !from.Before(until) {
		return
	}
	p.resume = until
	if p.running != nil {
		p.running.postpone(now, from, until)
	}
}

// Crash takes the node down until Restart: it sends and receives nothing, and its Work is dropped.
// Frames that have left it are still in flight.
func (n *Network[M]) Crash(node int) {
	p := &n.nodes[node]
	if t := p.running; t != nil {
		n.drop(t)
		t.kind = dropped // its event is still to come
	}
	for t := p.first; t != nil; {
		next := t.next
		n.drop(t)
		n.release(t)
		t = next
	}
	n.nodes[node] = dead[M]()
}

// Restart brings a crashed node back, idle. What arrived while it was down is lost, and so are the
// tasks that it had when it crashed. It does nothing to a node that is alive.
func (n *Network[M]) Restart(node int) { n.nodes[node].down = false }

// Alive reports whether the node is not down.
func (n *Network[M]) Alive(node int) bool { return !n.nodes[node].down }

// Counters of a network. A frame counts in Sent once. Each copy of it, one for each receiver and
// one for each duplicate, ends in Delivered, Lost, Corrupted, Misrouted or Cut.
type Counters struct {
	Sent       uint64 `json:"sent"`       // frames: a multicast is one
	Delivered  uint64 `json:"delivered"`  // calls of deliver
	Lost       uint64 `json:"lost"`       // by Faults.Loss, or because the receiver was down or went down
	Duplicated uint64 `json:"duplicated"` // second copies, by Faults.Duplicate
	Reordered  uint64 `json:"reordered"`  // late by Faults.Reorder
	Delayed    uint64 `json:"delayed"`    // late by Faults.Delay
	Corrupted  uint64 `json:"corrupted"`  // dropped by the receiver's checksum
	Cut        uint64 `json:"cut"`        // sent while their path was cut
	Misrouted  uint64 `json:"misrouted"`  // by Faults.Misroute
	Burst      uint64 `json:"burst"`      // of those lost: behind the first of a burst
	Overrun    uint64 `json:"overrun"`    // of those lost: beyond Faults.Ring
}

// Counters returns the counts since the network was made.
func (n *Network[M]) Counters() Counters { return n.count }
