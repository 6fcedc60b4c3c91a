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

	to      []*ether.Flow // by rank
	missing []int64       // bytes expected from each rank; negative if they arrived before
	partner int           // the rank of the exchange under way, or nobody
	rest    int64         // bytes of a long message behind the first ones, in either direction
	owed    handshake     // what this process has yet to send of a long message's exchange
}

// handshake is how far an exchange of long messages is. Both processes send, in this order:
//
//	request, with the message's first bytes   at once
//	ack                                       once the partner's request and a receive are here
//	the rest                                  once the partner's ack is here
type handshake uint8

const (
	oweNothing handshake = iota
	oweAck
	oweRest
)

const nobody = -1

// Source: Open MPI 1.2: mca_pml_ob1_send_request_start_btl and _start_rndv, btl_tcp_eager_limit.
const (
	// eagerLimit is the longest fragment that is sent before its receiver is known to be ready: a
	// whole message, or a request with the first bytes of a longer one. Headers count.
	eagerLimit  = 64 << 10
	headerBytes = 64 // of such a fragment, and of an ack
	// eagerBytes is how much of a message goes at once.
	eagerBytes = eagerLimit - headerBytes
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

// exchange sends bytes to another process, and reports whether as many have arrived from it. Of a
// long message the first bytes go at once, and the rest once the other process has them and has
// called for the message (rendezvous): it may be busy with a third one's.
func (p *process) exchange(partner int, bytes int64) (done bool) {
	p.partner = partner
	p.missing[partner] += bytes
	if bytes <= eagerBytes {
		p.flow(partner).Send(bytes)
		return p.exchanged()
	}
	p.missing[partner] += 2 * headerBytes
	p.rest, p.owed = bytes-eagerBytes, oweAck
	p.flow(partner).Send(eagerLimit)
	return p.exchanged()
}

// exchanged sends what may go now to the partner, and reports whether the exchange is complete.
func (p *process) exchanged() (done bool) {
	missing := p.missing[p.partner]
	if p.owed == oweAck && missing <= p.rest+headerBytes { // the partner's request is here
		p.owed = oweRest
		p.flow(p.partner).Send(headerBytes)
	}
	if p.owed == oweRest && missing <= p.rest { // its ack, too
		p.owed = oweNothing
		p.flow(p.partner).Send(p.rest)
	}
	if p.owed != oweNothing || missing > 0 {
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
