package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/mcd"
)

// Modes: where the nodes of a verb run.
const (
	modeThreads   = "threads"   // goroutines of this process
	modeProcesses = "processes" // a process for each
)

// modeFlag is for verbs that can run all nodes in this process also on kernel links.
func (p *place) modeFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.mode, "mode", "", "threads (all nodes in this process) or processes (default: threads on the fabric, else processes)")
}

// validateMode checks --mode, and fills in what it is by default.
func (p *place) validateMode() error {
	switch {
	case p.mode == "" && p.kind == "fabric":
		p.mode = modeThreads
	case p.mode == "":
		p.mode = modeProcesses
	case p.mode != modeThreads && p.mode != modeProcesses:
		return misuse("--mode %q: want %s or %s", p.mode, modeThreads, modeProcesses)
	case p.mode == modeProcesses && p.kind == "fabric":
		return misuse("--mode processes: the fabric is in memory; give --link packet or ring")
	case p.mode == modeThreads && p.here():
		return misuse("--mode threads: --interface, --hostfile and --node are for a node in each process")
	}
	return nil
}

// everywhere has every node do its part: here, if this process is one of them; in this process for all; or in processes
// that run this same command.
func (p *place) everywhere(cmd *cobra.Command, part func(ctx context.Context, ep *mcd.Endpoint, nic string) error) error {
	ctx := cmd.Context()
	switch {
	case p.here():
		return p.oneHere(ctx, part)
	case p.mode == modeThreads:
		return p.allHere(ctx, part)
	}
	return p.inNamespaces(ctx, cmd)
}

// oneHere is one node of several, each in a process of its own.
func (p *place) oneHere(ctx context.Context, part func(context.Context, *mcd.Endpoint, string) error) error {
	m, err := p.join(ctx)
	if err != nil {
		return err
	}
	if err = part(ctx, m.ep, m.nic); err != nil {
		err = fmt.Errorf("node %d: %w", m.ep.Node(), err)
	}
	return errors.Join(err, m.close())
}

// allHere runs all nodes in this process.
func (p *place) allHere(ctx context.Context, part func(context.Context, *mcd.Endpoint, string) error) error {
	// A node that spins keeps one of Go's processors busy, and if all are, Go looks for what has come for those that sleep
	// every 10 ms only.
	runtime.GOMAXPROCS(max(p.nodes, runtime.NumCPU()))
	nodes, closeAll, err := p.inThreads()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for k, e := range nodes {
		running.Go(func() {
			if err := part(ctx, e, ""); err != nil {
				stop(fmt.Errorf("node %d: %w", k, err))
			}
		})
	}
	running.Wait()
	return errors.Join(context.Cause(ctx), closeAll())
}
