package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
)

// NodeFunc is the part of one node in a verb. nic names its interface, if that is real.
type NodeFunc func(ctx context.Context, ep *mcd.Endpoint, nic string) error

// RunNodes runs the part of each node: of this one if the others are elsewhere, of all in this
// process, or of each in a process that runs this same verb. Others elsewhere must run what this
// one does, as Alike says it.
func (c *ClusterFlags) RunNodes(cmd *cobra.Command, alike string, part NodeFunc) error {
	switch {
	case c.Here():
		return c.runOne(cmd.Context(), alike, part)
	case c.Mode == modeThreads:
		return c.runThreads(cmd.Context(), part)
	}
	return c.runProcesses(cmd.Context(), cmd)
}

// runOne runs one node of several.
func (c *ClusterFlags) runOne(ctx context.Context, alike string, part NodeFunc) error {
	m, err := c.Join(ctx)
	if err != nil {
		return err
	}
	here := func(ctx context.Context) error { return part(ctx, m.Endpoint, m.NIC) }
	if os.Getenv(cli.EnvLocal) != "" { // one command has started all, and ends all
		err = here(ctx)
	} else {
		err = runAlike(ctx, m.Endpoint, alike, here)
	}
	if err != nil {
		err = fmt.Errorf("node %d: %w", m.Endpoint.Node(), err)
	}
	return errors.Join(err, m.Close())
}

// runThreads runs all nodes in this process.
func (c *ClusterFlags) runThreads(ctx context.Context, part NodeFunc) error {
	if c.allSpin {
		// A spinning node keeps one of Go's processors busy. With all of them busy, Go looks for
		// work of sleeping goroutines every 10 ms only.
		runtime.GOMAXPROCS(max(c.Nodes, runtime.NumCPU()))
	}
	nodes, closeAll, err := c.inThreads()
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
