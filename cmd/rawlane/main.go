// Command rawlane shows, measures and looks after messaging over raw Ethernet.
// Run it with --help for its verbs.
//
// Exit status: 0 if the work was done, 1 if it failed, 2 if the command line was wrong, 128 and the
// number of the signal that ended it.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/barrier"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/bench"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/demo"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/diagnose"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/grant"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/key"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/manager"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/proxy"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/route"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/sim"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/testbed"
)

func main() {
	ends, dropped := signals(os.Args[1:])
	ctx := untilSignal(ends...)
	signal.Notify(make(chan os.Signal, 1), dropped...)
	os.Exit(cli.Execute(ctx, cli.NewRoot(verbs), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// signals returns the signals that end a command line, without the program's name, and those that
// nobody hears.
func signals(args []string) (ends, dropped []os.Signal) {
	ends = []os.Signal{os.Interrupt, syscall.SIGTERM}
	// A reader that has had enough is an error of a write, after which the command tidies up.
	dropped = []os.Signal{syscall.SIGPIPE}
	verb := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	switch {
	case verb >= 0 && (args[verb] == "manager" || args[verb] == "grant"): // they read files again, once they have begun
		dropped = append(dropped, syscall.SIGHUP)
	case !signal.Ignored(syscall.SIGHUP): // ignored: as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	return ends, dropped
}

// untilSignal returns a context that the first of some signals ends; a second one ends the process.
func untilSignal(ends ...os.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, ends...)
	go awaitSignal(came, cancel, func() { signal.Stop(came) }) // until the process ends
	return ctx
}

// awaitSignal ends a context with the first signal, and no longer catches signals a little later.
func awaitSignal(came <-chan os.Signal, end context.CancelCauseFunc, stop func()) {
	end(&cli.SignalError{Signal: (<-came).(syscall.Signal)}) // all of package os's are
	time.Sleep(cli.SameSignal)
	stop()
}

// verbs is what the command can do, in the order of its help.
var verbs = []func() *cobra.Command{
	demo.NewCommand,
	bench.NewCommand,
	bench.NewTuneCommand,
	barrier.NewCommand,
	route.NewCommand,
	manager.NewCommand,
	grant.NewCommand,
	key.NewCommand,
	sim.NewCommand,
	proxy.NewCommand,
	diagnose.NewDoctorCommand,
	diagnose.NewNodeCommand,
	diagnose.NewPingCommand,
	diagnose.NewMatrixCommand,
	diagnose.NewDumpCommand,
	testbed.NewSwitchCommand,
	testbed.NewTestbedCommand,
	testbed.NewRunCommand,
	testbed.NewAgentCommand,
}
