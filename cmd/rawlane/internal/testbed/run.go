package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The environment of a program that `rawlane run` starts.
const (
	envNode       = "RAWLANE_NODE"       // the number of its node
	envNodes      = "RAWLANE_NODES"      // the number of nodes
	envInterfaces = "RAWLANE_INTERFACES" // its network interfaces, separated by commas
	envHostfile   = "RAWLANE_HOSTFILE"   // a file that lists the nodes
)

// NewRunCommand returns the verb run.
func NewRunCommand() *cobra.Command {
	var cfg testbed.Config
	cmd := &cobra.Command{
		Use:   "run -n N [flags] PROGRAM [ARGUMENT...]",
		Short: "Start a program once per node, each in a network namespace of its own",
		Long: `Starts a program N times, as nodes 0 to N-1, in network namespaces that share a switch. Each finds in
its environment RAWLANE_NODE and RAWLANE_NODES, RAWLANE_INTERFACES (eth0,eth1,...) and
RAWLANE_HOSTFILE, and GOMAXPROCS, its share of the cores, unless that is set. Lines that a program
prints are marked with its node's number.

If one fails, the others are ended, and its exit status is the command's.`,
		Args: cli.Arguments(1, math.MaxInt, "which program?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validBed(&cfg, "-n"); err != nil {
				return err
			}
			return run(cmd, cfg, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	bedFlags(cmd, &cfg)
	return cmd
}

func run(cmd *cobra.Command, cfg testbed.Config, args []string) error {
	if _, err := exec.LookPath(args[0]); err != nil {
		return err
	}
	bed, err := testbed.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bed.Close() }()
	hostfile, err := writeHostfile(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(hostfile) }()

	var printing sync.Mutex // held for one line
	programs := make([]*exec.Cmd, cfg.Nodes)
	for k := range programs {
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(launch.ShareOfCores(cfg.Nodes), envNode+"="+strconv.Itoa(k),
			envNodes+"="+strconv.Itoa(cfg.Nodes), envInterfaces+"="+launch.Interfaces(cfg.NICs),
			envHostfile+"="+hostfile)
		out := &lineWriter{prefix: fmt.Sprintf("[%d] ", k), out: cmd.OutOrStdout(), printing: &printing}
		errs := &lineWriter{prefix: out.prefix, out: cmd.ErrOrStderr(), printing: &printing}
		defer out.flush()
		defer errs.flush()
		c.Stdout, c.Stderr = out, errs
		programs[k] = c
	}
	err = launch.RunAll(cmd.Context(), bed, programs, 0)
	var status *cli.StatusError
	if errors.As(err, &status) {
		cmd.PrintErrf("rawlane run: %v; the others were ended\n", status)
	}
	return err
}

// writeHostfile writes the bed's nodes to a temporary host file.
func writeHostfile(cfg testbed.Config) (path string, err error) {
	f, err := os.CreateTemp("", "rawlane-hosts-")
	if err != nil {
		return "", err
	}
	for k := range cfg.Nodes {
		for nic := range cfg.NICs {
			fmt.Fprintf(f, "%d %v %s\n", k, testbed.MAC(k, nic), testbed.Interface(nic))
		}
	}
	return f.Name(), f.Close()
}

// lineWriter writes whole lines, each after a prefix.
type lineWriter struct {
	prefix   string
	out      io.Writer
	printing *sync.Mutex
	rest     []byte // of a line that has not ended
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		if err := w.line(w.rest[:end+1]); err != nil {
			return 0, err
		}
		w.rest = w.rest[end+1:]
	}
}

func (w *lineWriter) line(b []byte) error {
	w.printing.Lock()
	defer w.printing.Unlock()
	_, err := fmt.Fprintf(w.out, "%s%s", w.prefix, b)
	return err
}

// flush writes an unfinished last line.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		_ = w.line(append(w.rest, '\n')) // the program has ended
		w.rest = nil
	}
}
