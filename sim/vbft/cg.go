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

// CG is an experiment: the communication of the NAS Parallel Benchmark CG, one process on each
// host.
//
// Source: VFREC §5.3.
type CG struct {
	Network ether.Config
	Plan    *plan.Plan // of routes, at the start
	// Reroute has the VIDs that both nodes of a pair set at the start of each iteration, each when
	// it gets there. A node that sets any is busy with it for RerouteCost. It may be empty.
	Reroute map[plan.Pair]transport.VID

	Order      int           // rows of the matrix
	Iterations int           // timed calls of conj_grad; an untimed one comes first, as in NPB
	Compute    time.Duration // time of a process's share of a multiplication by the matrix
}

// What the paper ran is class B. Source: NPB 3.2, sys/setparams.c and CG/cg.f.
const (
	ClassBOrder      = 75_000
	ClassBIterations = 75

	// multiplications by the matrix in an iteration: cgitmax, and one for the residual.
	multiplications = 25 + 1
)

const (
	// DefaultCompute is a process's share of one of class B's 75*26 multiplications. Fitted: it is
	// what is left of the paper's about 26 s after three exchanges of 150 kB at full rate and four
	// of one number: 13.3 ms - 3*1.3 ms - 4*2*0.03 ms. So the time of the flat network tests
	// nothing. It is 190 Mflop/s, for the benchmark's 54.7 Gflop.
	DefaultCompute = 9200 * time.Microsecond

	// RerouteCost is that of a call of VFN_SetRouteMPI. Source: VFREC §5.1.
	RerouteCost = 39500 * time.Nanosecond

	// noise is the largest difference between two computations, relative to their length.
	noise = 0.01
)

// CGResult is the outcome of a run.
type CGResult struct {
	Elapsed time.Duration      // until the last process has ended the timed iterations
	Network ether.Counters     // of all iterations
	Flows   ether.FlowCounters // of all processes and iterations, together
}

// checkEvery is after how many events, some milliseconds of computing, the experiments call check.
const checkEvery = 1 << 16

// Run runs the experiment. It calls check, which may be nil, now and then; an error of it ends the
// run, and is returned. Other errors say what is wrong with c, or that the run has taken longer
// than ether.MaxTime.
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
		if j.queue.Now().After(monotime.At(ether.MaxTime)) {
			return nil, fmt.Errorf("CG: not done after %v (fewer iterations, less to compute, or a higher rate?)",
				ether.MaxTime)
		}
		if events%checkEvery == 0 && check != nil {
			if err := check(); err != nil {
				return nil, err
			}
		}
	}
	return &CGResult{j.queue.Now().Sub(j.timedFrom), j.network.Counters(), j.network.Flows()}, nil
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
		return fmt.Errorf("%d iterations of order %d, %v each (want 1 at least, %d at least, and 0 to %v)",
			c.Iterations, c.Order, c.Compute, n, ether.MaxTime)
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
	rng       prng.Source
	processes []*process
	warmingUp int           // processes in the first, untimed iteration
	timedFrom monotime.Time // the end of that iteration
	running   int           // processes that are not done
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
	j := &job{cg: c, queue: q, network: n, rng: prng.Source(^c.Network.Seed), warmingUp: nodes, running: nodes}
	for rank := range nodes {
		j.processes = append(j.processes, newProcess(j, rank, nodes))
	}
	return j, nil
}

// computeTime returns the length of the next computation.
func (j *job) computeTime() time.Duration {
	d := j.cg.Compute
	return d + j.rng.UpTo(time.Duration(noise*float64(d)))
}

// ended counts the processes that have ended an iteration.
func (j *job) ended(iteration int) {
	if iteration == 0 {
		if j.warmingUp--; j.warmingUp == 0 {
			j.timedFrom = j.queue.Now()
		}
	}
	if iteration == j.cg.Iterations {
		j.running--
	}
}
