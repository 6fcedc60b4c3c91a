package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The environment of a program that `rawlane run` starts.
const (
	envNode       = "RAWLANE_NODE"       // its node's number
	envNodes      = "RAWLANE_NODES"      // how many there are
	envInterfaces = "RAWLANE_INTERFACES" // its network interfaces, separated by commas
	envHostfile   = "RAWLANE_HOSTFILE"   // a file that lists the nodes
)

func NewRunCommand() *cobra.Command {
	var cfg testbed.Config
	cmd := &cobra.Command{
		Use:   "run -n N [flags] PROGRAM [ARGUMENT...]",
		Short: "Start a program once per node, each in a network namespace of its own",
		Long: `Starts a program N times, as nodes 0 to N-1, in network namespaces that share a switch. Each finds in its
environment RAWLANE_NODE and RAWLANE_NODES, RAWLANE_INTERFACES (eth0,eth1,...) and RAWLANE_HOSTFILE, and GOMAXPROCS, its
share of the cores, unless that is set. Lines that a program prints are marked with its node's number.

If one fails, the others are ended, and its exit status is the command's.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Misuse("which program?")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cfg.Nodes < 1 || cfg.Nodes > testbed.MaxNodes {
				return cli.Misuse("-n %d: want 1 to %d", cfg.Nodes, testbed.MaxNodes)
			}
			if cfg.NICs < 1 || cfg.NICs > testbed.MaxNICs {
				return cli.Misuse("--nics %d: want 1 to %d", cfg.NICs, testbed.MaxNICs)
			}
			return runPrograms(cmd, cfg, args)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.IntVarP(&cfg.Nodes, "nodes", "n", 2, "number of nodes")
	f.IntVar(&cfg.NICs, "nics", 1, "network interfaces of each, on networks of their own")
	f.IntVar(&cfg.MTU, "mtu", 1500, "their MTU, in bytes")
	return cmd
}

func runPrograms(cmd *cobra.Command, cfg testbed.Config, args []string) error {
	if _, err := exec.LookPath(args[0]); err != nil {
		return err
	}
	if err := testbed.Reexec(); err != nil {
		return err
	}
	bed, err := testbed.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bed.Close() }()
	hostfile, err := writeHostfile(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(hostfile) }()

	var interfaces []string
	for nic := range cfg.NICs {
		interfaces = append(interfaces, testbed.Interface(nic))
	}
	var turn sync.Mutex // whose line is being printed
	programs := make([]*exec.Cmd, cfg.Nodes)
	for k := range programs {
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(launch.ShareOfCores(cfg.Nodes), envNode+"="+strconv.Itoa(k), envNodes+"="+strconv.Itoa(cfg.Nodes),
			envInterfaces+"="+strings.Join(interfaces, ","), envHostfile+"="+hostfile)
		out := &lineWriter{prefix: fmt.Sprintf("[%d] ", k), out: cmd.OutOrStdout(), turn: &turn}
		errs := &lineWriter{prefix: out.prefix, out: cmd.ErrOrStderr(), turn: &turn}
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

// lineWriter passes lines on whole, each behind a prefix.
type lineWriter struct {
	prefix string
	out    io.Writer
	turn   *sync.Mutex
	rest   []byte // of a line that has not ended
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
	w.turn.Lock()
	defer w.turn.Unlock()
	_, err := fmt.Fprintf(w.out, "%s%s", w.prefix, b)
	return err
}

// flush ends a last line that its program did not end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		_ = w.line(append(w.rest, '\n')) // nobody is left to tell
		w.rest = nil
	}
}
