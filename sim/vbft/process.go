package vbft

import (
	"slices"

	"github.com/rawlane/rawlane/sim/ether"
)

// process is one of a job's. It repeats its steps, one iteration after the other.
type process struct {
	job       *job
	rank      int
	steps     []step
	next      int // of steps
	iteration int
	resume    func() // run

	to     []*ether.Flow // by rank
	owed   []int64       // bytes that are awaited of each rank; less than 0 if it is early
	awaits int           // a rank, or nobody
	held   int64         // bytes of a long message to it, until it awaits them
}

const nobody = -1

const (
	// eagerLimit is the longest message that is sent before its receiver is known to await it,
	// and readyBytes what it takes to say so.
	// Source: Open MPI 1.2, btl_tcp_eager_limit; its header.
	eagerLimit = 64 << 10
	readyBytes = 64
)

func newProcess(j *job, rank, nodes int) *process {
	p := &process{job: j, rank: rank, awaits: nobody, to: make([]*ether.Flow, nodes), owed: make([]int64, nodes)}
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

// run goes on until the process is busy, has to wait or is done.
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
			p.job.queue.After(p.job.computing(), p.resume)
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

// exchange sends bytes to another process, and reports whether as many have come from it;
// otherwise they are awaited. A long message goes once the other process has said that it awaits
// it, as in MPI libraries: it may be busy with another one's.
func (p *process) exchange(partner int, bytes int64) (done bool) {
	p.awaits = partner
	p.owed[partner] += bytes
	if bytes <= eagerLimit {
		p.flow(partner).Send(bytes)
		return p.exchanged()
	}
	p.owed[partner] += readyBytes
	p.held = bytes
	p.flow(partner).Send(readyBytes)
	return p.exchanged()
}

// exchanged sends what may go now to the process that is awaited, and reports whether that still
// is.
func (p *process) exchanged() (done bool) {
	owed := p.owed[p.awaits]
	if p.held > 0 && owed <= p.held { // nothing else is: it is ready
		bytes := p.held
		p.held = 0
		p.flow(p.awaits).Send(bytes)
	}
	if p.held > 0 || owed > 0 {
		return false
	}
	p.awaits = nobody
	return true
}

// arrived is called as bytes come from another process.
func (p *process) arrived(from int, bytes int64) {
	p.owed[from] -= bytes
	if p.awaits == from && p.exchanged() {
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
