package vbft

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// CG is the experiment of VFREC §5.3: what the processes of the NAS Parallel Benchmark CG send each other, one process on
// each host. There are 4, 16, 64 or 256 of them.
type CG struct {
	Network ether.Config
	// Plan is the routes at the start.
	Plan *vlan.Plan
	// Reroute, if not empty, is what the two nodes of each pair set at the start of each iteration, one after the other as they
	// get there. A node that sets any is busy for RerouteCost.
	Reroute map[vlan.Pair]transport.VID

	Class      Class
	Iterations int           // that are timed, of conj_grad; one more comes before, as in NPB
	Compute    time.Duration // of a process, for one multiplication of its part of the matrix; 0: DefaultCompute
}

// Class is the size of the problem.
type Class struct {
	Name       string
	Order      int // rows of the matrix
	Iterations int // of conj_grad
}

// ClassB is what the paper ran. Source: NPB 3.2, sys/setparams.c.
var ClassB = Class{"B", 75_000, 75}

const (
	// cgSteps is how many steps conj_grad takes. One multiplication more gives the residual. Source: NPB 3.2, CG/cg.f, cgitmax.
	cgSteps = 25

	// DefaultCompute is what is left of the paper's about 26 s for each of class B's 75*26 multiplications, if the rest of it is
	// three exchanges of vectors at full rate and the exchanges of single numbers: 13.3 ms - 3*1.3 ms - 4*0.05 ms.
	DefaultCompute = 9200 * time.Microsecond

	// RerouteCost is that of a call of VFN_SetRouteMPI. Source: VFREC §5.1.
	RerouteCost = 39500 * time.Nanosecond

	// noise is how much longer than another a process may compute, as a share.
	noise = 0.01

	wordBytes = 8

	// eagerLimit is the longest message that is sent before its receiver asks, and rendezvousBytes what it takes to ask: the defaults
	// of Open MPI 1.2 over TCP.
	eagerLimit      = 64 << 10
	rendezvousBytes = 64
)

// CGResult is what came out.
type CGResult struct {
	Elapsed time.Duration // of the timed iterations
	Network ether.Counters
	Flows   ether.FlowCounters // of all together
	Events  int                // that the simulation took
}

// Run runs the experiment.
func (c *CG) Run() (*CGResult, error) {
	nodes, err := c.validate()
	if err != nil {
		return nil, fmt.Errorf("CG: %w", err)
	}
	q := new(sim.Queue)
	n, err := ether.New(q, c.Network)
	if err != nil {
		return nil, fmt.Errorf("CG: %w", err)
	}
	n.Apply(c.Plan)
	j := &job{queue: q, network: n, chance: sim.Chance(c.Network.Seed + 1), cg: c, running: nodes}
	for rank := range nodes {
		j.processes = append(j.processes, newProcess(j, rank, nodes))
	}
	for _, p := range j.processes {
		p.run()
	}
	events := 0
	for j.running > 0 {
		if !q.Step() {
			return nil, fmt.Errorf("CG: %d processes wait for ever", j.running)
		}
		events++
	}
	return &CGResult{Elapsed: q.Now().Sub(j.warm), Network: n.Counters(), Flows: n.Flows(), Events: events}, nil
}

func (c *CG) validate() (nodes int, err error) {
	t := c.Network.Topology
	if t == nil || c.Plan == nil {
		return 0, fmt.Errorf("want a topology and a plan")
	}
	nodes = len(t.Hosts)
	switch {
	case nodes < 4 || nodes > 256 || bits.OnesCount(uint(nodes)) != 1 || bits.TrailingZeros(uint(nodes))%2 != 0:
		return 0, fmt.Errorf("%d hosts (want 4, 16, 64 or 256)", nodes)
	case len(c.Plan.Nodes) != nodes:
		return 0, fmt.Errorf("a plan of %d nodes for %d hosts", len(c.Plan.Nodes), nodes)
	case c.Iterations < 1 || c.Class.Order < nodes || c.Compute < 0:
		return 0, fmt.Errorf("%d iterations of order %d, %v each (want 1 at least, the order at least the hosts)", c.Iterations, c.Class.Order, c.Compute)
	}
	for _, v := range c.Plan.VIDs {
		if !hasVID(t, v) {
			return 0, fmt.Errorf("the plan uses VID %d, which the topology lacks", v)
		}
	}
	for p, v := range c.Reroute {
		if p.A < 0 || p.A >= p.B || p.B >= nodes || !hasVID(t, v) {
			return 0, fmt.Errorf("route %v by VID %d: no such pair or VID", p, v)
		}
	}
	return nodes, nil
}

// job is a run of all processes.
type job struct {
	queue     *sim.Queue
	network   *ether.Network
	chance    sim.Chance
	cg        *CG
	processes []*process
	warming   int       // how many have ended the iteration that is not timed
	warm      mono.Time // when the last of them did
	running   int
}

// process is one process: a list of steps, which it repeats for each iteration.
type process struct {
	job       *job
	rank      int
	steps     []step
	next      int
	iteration int
	to        []*ether.Flow // by rank
	owed      []int64       // bytes that the other ranks have yet to deliver, by rank; less than 0 if they are early
	held      int64         // bytes of a long message that wait until the partner awaits them
	awaits    int           // a rank, or nobody
	again     func()
}

const nobody = -1

// step is a computation, or an exchange of as many bytes with another process both ways, or a change of routes.
type step struct {
	kind    stepKind
	partner int
	bytes   int64
}

type stepKind uint8

const (
	computes stepKind = iota
	exchanges
	reroutes
)

func newProcess(j *job, rank, nodes int) *process {
	p := &process{job: j, rank: rank, awaits: nobody, to: make([]*ether.Flow, nodes), owed: make([]int64, nodes)}
	p.again = p.run
	p.steps = conjGrad(rank, nodes, j.cg.Class.Order)
	for pair := range j.cg.Reroute {
		if pair.A == rank || pair.B == rank {
			p.steps = append([]step{{kind: reroutes}}, p.steps...)
			break
		}
	}
	return p
}

// run goes on until the process has to wait.
func (p *process) run() {
	for {
		if p.next == len(p.steps) {
			if p.ended() {
				return
			}
		}
		s := p.steps[p.next]
		p.next++
		switch s.kind {
		case computes:
			p.job.queue.After(p.job.computing(), p.again)
			return
		case reroutes:
			p.reroute()
			p.job.queue.After(RerouteCost, p.again)
			return
		case exchanges:
			if !p.exchange(s.partner, s.bytes) {
				return
			}
		}
	}
}

// ended ends an iteration, and reports whether that was the last.
func (p *process) ended() bool {
	j := p.job
	if p.iteration == 0 {
		if j.warming++; j.warming == len(j.processes) {
			j.warm = j.queue.Now()
		}
	}
	p.iteration++
	p.next = 0
	if p.iteration > j.cg.Iterations {
		j.running--
		return true
	}
	return false
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

// flow returns the stream to another process.
func (p *process) flow(to int) *ether.Flow {
	if p.to[to] == nil {
		other := p.job.processes[to]
		p.to[to] = p.job.network.NewFlow(p.rank, to, func(bytes int64) { other.arrived(p.rank, bytes) })
	}
	return p.to[to]
}

// exchange sends bytes to another process, and reports whether as many have come from it; otherwise they are awaited. A long
// message goes once the other one has said that it awaits it, as MPI libraries have it: it may be busy with another.
func (p *process) exchange(partner int, bytes int64) (done bool) {
	now := bytes
	if bytes > eagerLimit {
		now, p.held = rendezvousBytes, bytes
		p.owed[partner] += rendezvousBytes
	}
	p.owed[partner] += bytes
	p.awaits = partner
	p.flow(partner).Send(now)
	return p.exchanged()
}

// exchanged sends what may be sent now to the process that is awaited, and reports whether it need not be any more.
func (p *process) exchanged() bool {
	if owed := p.owed[p.awaits]; p.held > 0 && owed <= p.held {
		bytes := p.held
		p.held = 0
		p.flow(p.awaits).Send(bytes)
	}
	if p.held > 0 || p.owed[p.awaits] > 0 {
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

// computing returns how long the next computation takes.
func (j *job) computing() time.Duration {
	d := j.cg.Compute
	if d == 0 {
		d = DefaultCompute
	}
	return d + j.chance.UpTo(time.Duration(noise*float64(d)))
}
