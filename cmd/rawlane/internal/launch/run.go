package launch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
)

// Modes: where the nodes of a verb run.
const (
	modeThreads   = "threads"   // goroutines of this process
	ModeProcesses = "processes" // a process for each
)

// ModeFlag is for verbs that can run all nodes in this process also on kernel links.
func (p *ClusterFlags) ModeFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Mode, "mode", "", "threads (all nodes in this process) or processes (default: threads on the fabric, else processes)")
}

// ValidateMode checks --mode, and fills in what it is by default.
func (p *ClusterFlags) ValidateMode() error {
	switch {
	case p.Mode == "" && p.Kind == "fabric":
		p.Mode = modeThreads
	case p.Mode == "":
		p.Mode = ModeProcesses
	case p.Mode != modeThreads && p.Mode != ModeProcesses:
		return cli.Misuse("--mode %q: want %s or %s", p.Mode, modeThreads, ModeProcesses)
	case p.Mode == ModeProcesses && p.Kind == "fabric":
		return cli.Misuse("--mode processes: the fabric is in memory; give --link packet or ring")
	case p.Mode == modeThreads && p.Here():
		return cli.Misuse("--mode threads: --interface, --hostfile and --node are for a node in each process")
	}
	return nil
}

// RunNodes has every node do its part: here, if this process is one of them; in this process for
// all; or in processes that run this same command.
func (p *ClusterFlags) RunNodes(cmd *cobra.Command, part func(ctx context.Context, ep *mcd.Endpoint, nic string) error) error {
	ctx := cmd.Context()
	switch {
	case p.Here():
		return p.oneHere(ctx, part)
	case p.Mode == modeThreads:
		return p.allHere(ctx, part)
	}
	return p.InNamespaces(ctx, cmd)
}

// oneHere is one node of several, each in a process of its own.
func (p *ClusterFlags) oneHere(ctx context.Context, part func(context.Context, *mcd.Endpoint, string) error) error {
	m, err := p.Join(ctx)
	if err != nil {
		return err
	}
	if err = part(ctx, m.Endpoint, m.NIC); err != nil {
		err = fmt.Errorf("node %d: %w", m.Endpoint.Node(), err)
	}
	return errors.Join(err, m.Close())
}

// allHere runs all nodes in this process.
func (p *ClusterFlags) allHere(ctx context.Context, part func(context.Context, *mcd.Endpoint, string) error) error {
	// A node that spins keeps one of Go's processors busy, and if all are, Go looks for what has
	// come for those that sleep every 10 ms only.
	runtime.GOMAXPROCS(max(p.Nodes, runtime.NumCPU()))
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
