// Command rawlane shows, measures and looks after messaging over raw Ethernet.
// Run it without arguments for its verbs.
//
// Exit status: 0 if the work was done, 1 if it failed, 2 if the command line was wrong.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/barrier"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/bench"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/demo"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/diagnose"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/grant"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/manager"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/route"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/sim"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/testbed"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	status := cli.Execute(ctx, cli.NewRoot(verbs), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// verbs is what the command can do, in the order of its help.
var verbs = []func() *cobra.Command{
	demo.NewCommand,
	bench.NewCommand,
	barrier.NewCommand,
	route.NewCommand,
	manager.NewCommand,
	grant.NewCommand,
	sim.NewCommand,
	diagnose.NewDoctorCommand,
	diagnose.NewNodeCommand,
	diagnose.NewPingCommand,
	diagnose.NewMatrixCommand,
	diagnose.NewDumpCommand,
	testbed.NewSwitchCommand,
	testbed.NewTestbedCommand,
	testbed.NewRunCommand,
}
