package vbft

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Sizes are the numbers of processes that CG is for: squares of powers of two.
var Sizes = []int{4, 16, 64, 256}

// CG is an experiment: what the processes of the NAS Parallel Benchmark CG send each other, one
// on each host.
//
// Source: VFREC §5.3.
type CG struct {
	Network ether.Config
	Plan    *plan.Plan // of routes, at the start
	// Reroute, if it has any, is what both nodes of each pair set at the start of each iteration,
	// each as it gets there. A node that sets any is busy with it for RerouteCost.
	Reroute map[plan.Pair]transport.VID

	Order      int           // rows of the matrix
	Iterations int           // that are timed, of conj_grad; one more comes before, as in NPB
	Compute    time.Duration // of a process, for its part of a multiplication by the matrix
}

// What the paper ran is class B. Source: NPB 3.2, sys/setparams.c and CG/cg.f.
const (
	ClassBOrder      = 75_000
	ClassBIterations = 75

	// multiplications by the matrix in an iteration: cgitmax, and one for the residual.
	multiplications = 25 + 1
)

const (
	// DefaultCompute is a process's share of one of class B's 75*26 multiplications: what is left
	// of the paper's about 26 s after three exchanges of 150 kB at full rate and four of one
	// number: 13.3 ms - 3*1.3 ms - 4*2*0.03 ms. That is 190 Mflop/s, for the benchmark's 54.7
	// Gflop.
	DefaultCompute = 9200 * time.Microsecond

	// RerouteCost is that of a call of VFN_SetRouteMPI. Source: VFREC §5.1.
	RerouteCost = 39500 * time.Nanosecond

	// noise is by how much a computation may take longer than another.
	noise = 0.01
)

// CGResult is what came out.
type CGResult struct {
	Elapsed time.Duration      // by the last process, of the timed iterations
	Network ether.Counters     // of all iterations
	Flows   ether.FlowCounters // of all processes and iterations, together
}

// checkEvery is after how many events Run asks whether to go on: some milliseconds.
const checkEvery = 1 << 16

// Run runs the experiment. Now and then it calls check, which may be nil; its error ends the run,
// and is returned. Other errors say what is wrong with c, or that it took longer than
// ether.MaxTime.
func (c *CG) Run(check func() error) (*CGResult, error) {
	j, err := newJob(c)
	if err != nil {
		return nil, fmt.Errorf("CG: %w", err)
	}
	for _, p := range j.processes {
		p.run()
	}
	for events := 1; j.running > 0; events++ {
		if !j.queue.Step() {
			panic(fmt.Sprintf("vbft: nothing happens any more, but %d processes wait", j.running))
		}
		if events%checkEvery != 0 {
			continue
		}
		if j.queue.Now().After(monotime.At(ether.MaxTime)) {
			return nil, fmt.Errorf("CG: not done after %v (fewer iterations, or a higher rate?)", ether.MaxTime)
		}
		if check != nil {
			if err := check(); err != nil {
				return nil, err
			}
		}
	}
	return &CGResult{j.queue.Now().Sub(j.warm), j.network.Counters(), j.network.Flows()}, nil
}

func (c *CG) validate() error {
	t := c.Network.Topology
	if t == nil || c.Plan == nil {
		return errors.New("want a topology and a plan")
	}
	n := len(t.Hosts)
	switch {
	case !slices.Contains(Sizes, n):
		return fmt.Errorf("%d hosts (want one of %v)", n, Sizes)
	case len(c.Plan.Nodes) != n:
		return fmt.Errorf("a plan of %d nodes for %d hosts", len(c.Plan.Nodes), n)
	case c.Order < n || c.Iterations < 1 || c.Compute < 0 || c.Compute > ether.MaxTime:
		return fmt.Errorf("%d iterations of order %d, %v each (want 1 at least, %d at least, and 0 to %v)", c.Iterations, c.Order, c.Compute, n, ether.MaxTime)
	}
	if err := c.Plan.Validate(); err != nil {
		return err
	}
	for _, v := range c.Plan.VIDs {
		if !hasVID(t, v) {
			return fmt.Errorf("the plan uses VID %d, which the topology lacks", v)
		}
	}
	for p, v := range c.Reroute {
		if p.A < 0 || p.A >= p.B || p.B >= n || !hasVID(t, v) {
			return fmt.Errorf("pair %v by VID %d: there is no such pair or VID", p, v)
		}
	}
	return nil
}

// job is all processes of a run.
type job struct {
	cg        *CG
	queue     *sim.Queue
	network   *ether.Network
	chance    prng.Source
	processes []*process
	warming   int           // have not ended the first iteration, which is not timed
	warm      monotime.Time // when the last of them did
	running   int           // have not ended the last iteration
}

func newJob(c *CG) (*job, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	q := new(sim.Queue)
	n, err := ether.New(q, c.Network)
	if err != nil {
		return nil, err
	}
	n.Apply(c.Plan)
	nodes := len(c.Plan.Nodes)
	j := &job{cg: c, queue: q, network: n, chance: prng.Source(^c.Network.Seed), warming: nodes, running: nodes}
	for rank := range nodes {
		j.processes = append(j.processes, newProcess(j, rank, nodes))
	}
	return j, nil
}

// computing returns how long the next computation takes.
func (j *job) computing() time.Duration {
	d := j.cg.Compute
	return d + j.chance.UpTo(time.Duration(noise*float64(d)))
}

// ended counts the iterations that processes end.
func (j *job) ended(iteration int) {
	if iteration == 0 {
		if j.warming--; j.warming == 0 {
			j.warm = j.queue.Now()
		}
	}
	if iteration == j.cg.Iterations {
		j.running--
	}
}
