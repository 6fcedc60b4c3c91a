package vbft

import (
	"slices"

	"github.com/rawlane/rawlane/sim/ether"
)

// process is one process of a job. It repeats its steps once for each iteration.
type process struct {
	job       *job
	rank      int
	steps     []step
	next      int // of steps
	iteration int
	resume    func() // run

	to         []*ether.Flow // by rank
	missing    []int64       // bytes expected from each rank; negative if they arrived before
	partner    int           // the rank of the exchange under way, or nobody
	rendezvous int64         // bytes of a long message for the partner, until it is ready
}

const nobody = -1

const (
	// eagerLimit is the longest message that is sent before its receiver has announced that it is
	// ready, and readyBytes the length of that announcement. Source: Open MPI 1.2,
	// btl_tcp_eager_limit; its header.
	eagerLimit = 64 << 10
	readyBytes = 64
)

func newProcess(j *job, rank, nodes int) *process {
	p := &process{job: j, rank: rank, partner: nobody, to: make([]*ether.Flow, nodes), missing: make([]int64, nodes)}
	p.resume = p.run
	p.steps = conjGrad(rank, nodes, j.cg.Order)
	for pair := range j.cg.Reroute {
		if pair.A == rank || pair.B == rank {
			p.steps = slices.Insert(p.steps, 0, step{kind: reroutes})
			break
		}
	}
	return p
}

// run goes on until the process computes, waits or is done.
func (p *process) run() {
	for {
		if p.next == len(p.steps) {
			p.job.ended(p.iteration)
			p.iteration++
			p.next = 0
			if p.iteration > p.job.cg.Iterations {
				return
			}
		}
		s := p.steps[p.next]
		p.next++
		switch s.kind {
		case computes:
			p.job.queue.After(p.job.computeTime(), p.resume)
			return
		case reroutes:
			p.reroute()
			p.job.queue.After(RerouteCost, p.resume)
			return
		case exchanges:
			if !p.exchange(s.partner, s.bytes) {
				return
			}
		}
	}
}

// reroute sets this node's end of its pairs.
func (p *process) reroute() {
	for pair, vid := range p.job.cg.Reroute {
		switch p.rank {
		case pair.A:
			p.job.network.SetVID(pair.A, pair.B, vid)
		case pair.B:
			p.job.network.SetVID(pair.B, pair.A, vid)
		}
	}
}

// exchange sends bytes to another process, and reports whether as many have arrived from it. A long
// message goes once the other process is ready (rendezvous), as in MPI libraries: it may be busy
// with a third one's.
func (p *process) exchange(partner int, bytes int64) (done bool) {
	p.partner = partner
	p.missing[partner] += bytes
	if bytes <= eagerLimit {
		p.flow(partner).Send(bytes)
		return p.exchanged()
	}
	p.missing[partner] += readyBytes
	p.rendezvous = bytes
	p.flow(partner).Send(readyBytes)
	return p.exchanged()
}

// exchanged sends what may go now to the partner, and reports whether the exchange is complete.
func (p *process) exchanged() (done bool) {
	owed := p.missing[p.partner]
	if p.rendezvous > 0 && owed <= p.rendezvous { // only its long message is missing: it is ready
		bytes := p.rendezvous
		p.rendezvous = 0
		p.flow(p.partner).Send(bytes)
	}
	if p.rendezvous > 0 || owed > 0 {
		return false
	}
	p.partner = nobody
	return true
}

// arrived takes bytes from another process.
func (p *process) arrived(from int, bytes int64) {
	p.missing[from] -= bytes
	if p.partner == from && p.exchanged() {
		p.run()
	}
}

// flow returns the stream to another process.
func (p *process) flow(to int) *ether.Flow {
	if p.to[to] == nil {
		other := p.job.processes[to]
		p.to[to] = p.job.network.NewFlow(p.rank, to, func(bytes int64) { other.arrived(p.rank, bytes) })
	}
	return p.to[to]
}
