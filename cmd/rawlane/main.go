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
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	status := execute(ctx, newRootCommand(verbs), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// verbs is what the command can do, in the order of its help.
var verbs = []func() *cobra.Command{
	newDemoCommand,
	newBenchCommand,
	newBarrierCommand,
	newRouteCommand,
	newManagerCommand,
	newSimCommand,
	newDoctorCommand,
	newNodeCommand,
	newPingCommand,
	newMatrixCommand,
	newDumpCommand,
	newSwitchCommand,
	newTestbedCommand,
	newRunCommand,
}
