package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
)

// barrierRun is one node's part in the benchmark.
type barrierRun struct {
	bench *barrierBench
	ep    *mcd.Endpoint
	host  host
	cmd   *cobra.Command
	port  *mcd.Port
	taken [][]uint32 // the samples of each loop, in ns; grows as loops end, and is read by the port's handler
}

// benchSamples is the port that gives out a node's samples.
const benchSamples mcd.PortID = 203

// barrierWarmUp is how many barriers are not counted, at least.
const barrierWarmUp = 20

// loops of the benchmark.
var barrierLoops = []string{"work", "tight"}

// all runs every algorithm, and on node 0 collects and prints the results.
func (r *barrierRun) all(ctx context.Context) error {
	loops := len(r.bench.algos) * len(barrierLoops)
	r.taken = make([][]uint32, loops)
	published := make([]chan struct{}, loops)
	for i := range published {
		published[i] = make(chan struct{})
	}
	var err error
	if r.port, err = r.openSamples(published); err != nil {
		return err
	}
	defer func() { _ = r.port.Close() }()
	end, err := barrier.NewGroup(r.ep, barrier.Config{ID: uint32(loops) + 1, Limit: r.bench.limit})
	if err != nil {
		return err
	}
	spin := newSpinner(r.bench.work)
	table := barrierTable{out: r.cmd.OutOrStdout(), json: r.bench.json, beside: r.bench.beside}
	note := newProgress(r.cmd.ErrOrStderr())
	for i, name := range r.bench.algos {
		if r.ep.Node() == 0 {
			note.say("%s ...", name)
		}
		if err := r.one(ctx, i, name, spin, published, &table); err != nil {
			return err
		}
		if r.ep.Node() == 0 {
			note.clear()
		}
	}
	return errors.Join(end.Barrier(ctx), end.Close()) // the others answer until node 0 has all
}

// one runs both loops with one algorithm.
func (r *barrierRun) one(ctx context.Context, i int, name string, spin spinner, published []chan struct{}, table *barrierTable) error {
	g, err := barrier.NewGroup(r.ep, barrier.Config{ID: uint32(i), Algorithm: r.bench.algorithm(name), Limit: r.bench.limit})
	if err != nil {
		return err
	}
	for l, loop := range barrierLoops {
		k := i*len(barrierLoops) + l
		work := spin
		if loop == "tight" {
			work = 0
		}
		before := g.Stats()
		samples, err := measureBarriers(ctx, g, r.bench.iters, work)
		if err != nil {
			return err
		}
		after := g.Stats()
		r.taken[k] = samples
		close(published[k])
		if r.ep.Node() != 0 {
			continue
		}
		res := r.result(g, name, loop)
		res.Asked = after.Asked - before.Asked
		if err := r.collect(ctx, k, res); err != nil {
			return err
		}
		if err := table.write(res); err != nil {
			return err
		}
	}
	return g.Close()
}

// warmUpOf is how many barriers come before those that count.
func warmUpOf(iters int) int { return max(barrierWarmUp, int(float64(iters)*warmUp)) }

// measureBarriers returns what each of a number of barriers takes.
func measureBarriers(ctx context.Context, g *barrier.Group, iters int, work spinner) ([]uint32, error) {
	samples := make([]uint32, 0, iters)
	warm := warmUpOf(iters)
	for i := range warm + iters {
		start := time.Now()
		if err := g.Barrier(ctx); err != nil {
			return nil, err
		}
		if took := time.Since(start); i >= warm {
			samples = append(samples, uint32(min(took, math.MaxUint32)))
		}
		work.spin()
	}
	return samples, nil
}

// spinner is a loop of so many rounds that takes a given time where nothing else runs.
type spinner int

var spun uint64

func (s spinner) spin() {
	x := spun
	for range s {
		x = x*6364136223846793005 + 1
	}
	spun = x
}

// newSpinner finds how many rounds take a time.
func newSpinner(work time.Duration) spinner {
	const rounds = spinner(20_000)
	best := time.Duration(math.MaxInt64)
	for range 20 {
		start := time.Now()
		rounds.spin()
		best = min(best, max(1, time.Since(start)))
	}
	return spinner(float64(rounds) * float64(work) / float64(best))
}

// A request for samples is the loop's number and the first sample; the answer repeats it, with samples behind.
const (
	sampleRequestLen = 2 + 4
	sampleLen        = 4
)

// openSamples gives out the samples of loops that are published.
func (r *barrierRun) openSamples(published []chan struct{}) (*mcd.Port, error) {
	if r.ep.Node() == 0 {
		return r.ep.Port(benchSamples)
	}
	var port *mcd.Port
	opened := make(chan struct{})
	answer := make([]byte, 0, r.ep.MaxPayload())
	port, err := r.ep.OpenPort(benchSamples, mcd.PortOptions{Handler: func(m *mcd.Message) {
		<-opened
		if len(m.Payload) != sampleRequestLen {
			return
		}
		loop, first := int(binary.BigEndian.Uint16(m.Payload)), int(binary.BigEndian.Uint32(m.Payload[2:]))
		if loop >= len(published) {
			return
		}
		select {
		case <-published[loop]:
		default:
			return // not yet: node 0 asks again
		}
		if first > len(r.taken[loop]) {
			return
		}
		answer = append(answer[:0], m.Payload...)
		for _, s := range r.taken[loop][first:] {
			if len(answer)+sampleLen > r.ep.MaxPayload() {
				break
			}
			answer = binary.BigEndian.AppendUint32(answer, s)
		}
		_ = port.TrySend(m.NIC, mcd.To(m.From), answer) // node 0 asks again if it gets no answer
	}})
	close(opened)
	return port, err
}

// collect asks all nodes for a loop's samples, and fills in what they come to.
func (r *barrierRun) collect(ctx context.Context, loop int, res *barrierResult) error {
	all := [][]uint32{r.taken[loop]}
	for _, n := range r.ep.Nodes() {
		if n.ID == r.ep.Node() {
			continue
		}
		samples, err := r.fetch(ctx, n.ID, loop)
		if err != nil {
			return err
		}
		all = append(all, samples)
	}
	res.fill(all)
	return nil
}

// fetch asks one node for its samples.
func (r *barrierRun) fetch(ctx context.Context, node mcd.NodeID, loop int) (samples []uint32, err error) {
	asked := time.Now()
	for len(samples) < r.bench.iters {
		request := binary.BigEndian.AppendUint16(nil, uint16(loop))
		request = binary.BigEndian.AppendUint32(request, uint32(len(samples)))
		if err := r.port.Send(ctx, mcd.Addr{Node: node, Port: benchSamples}, request); err != nil {
			return nil, err
		}
		more, err := r.receive(ctx, node, request)
		switch {
		case err != nil:
			return nil, err
		case len(more) > 0:
			samples, asked = append(samples, more...), time.Now()
		case time.Since(asked) > askPatience:
			return nil, fmt.Errorf("node %d has not answered for %v (has it ended, or is its cable out?)", node, askPatience)
		}
	}
	return samples, nil
}

// receive waits a little for the answer to a request.
func (r *barrierRun) receive(ctx context.Context, node mcd.NodeID, request []byte) (samples []uint32, err error) {
	turn, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	b := make([]byte, r.ep.MaxPayload())
	for {
		n, from, err := r.port.Recv(turn, b)
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if from.Node != node || n < sampleRequestLen || !slices.Equal(b[:sampleRequestLen], request) {
			continue
		}
		for at := sampleRequestLen; at+sampleLen <= n; at += sampleLen {
			samples = append(samples, binary.BigEndian.Uint32(b[at:]))
		}
		return samples, nil
	}
}
