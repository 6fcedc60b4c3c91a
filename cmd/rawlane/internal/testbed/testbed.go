// Package testbed is the verbs for clusters of network namespaces: testbed, run and switch.
package testbed

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
)

// bedName matches the names of beds, which are names of files.
var bedName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// testbedVerb is the verbs testbed up, down and exec.
type testbedVerb struct {
	name string
	cfg  testbed.Config
}

// NewTestbedCommand returns the verb testbed.
func NewTestbedCommand() *cobra.Command {
	t := &testbedVerb{}
	cmd := &cobra.Command{
		Use:   "testbed up|down|exec|list",
		Short: "Keep a cluster of network namespaces to try things in",
		Long: `A test bed is a cluster of network namespaces: nodes with an interface eth0 each, joined by a Linux
bridge (or, two nodes, by a pair). It lives until "down", held by a process in the background; nothing
is left behind when that ends. It needs root, or user namespaces.

  rawlane testbed up --nodes 3
  rawlane testbed exec 0 rawlane node --node 0 --nodes 3
  rawlane testbed down`,
		PersistentPreRunE: func(*cobra.Command, []string) error { return t.validateName() },
	}
	cmd.PersistentFlags().StringVar(&t.name, "name", "default", "the bed's name")
	return cli.Group(cmd, "which?", t.newUpCommand(), t.newDownCommand(), t.newExecCommand(), newListCommand())
}

func (t *testbedVerb) validateName() error {
	if !bedName.MatchString(t.name) {
		return cli.Misuse("--name %q: want up to 32 letters, digits, - and _", t.name)
	}
	return nil
}

func (t *testbedVerb) newUpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "up [flags]",
		Short:   "Make a bed",
		Example: "  rawlane testbed up --name two --nodes 2 --mtu 9000",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validBed(&t.cfg, "--nodes"); err != nil {
				return err
			}
			return bedUp(cmd, t.name, t.cfg)
		},
	}
	bedFlags(cmd, &t.cfg)
	cmd.Flags().BoolVar(&t.cfg.Bridge, "bridge", false, "join even two nodes by a bridge")
	return cmd
}

func (t *testbedVerb) newDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		Short:   "Remove the bed, and end what runs in it",
		Example: "  rawlane testbed down --name two",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return bedDown(cmd.Context(), t.name) },
	}
}

func (t *testbedVerb) newExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec [--name NAME] NODE PROGRAM [ARGUMENT...]",
		Short: "Run a program on a node; its exit status is the command's",
		Long: `Runs a program on a node of a bed. Flags of exec stand before the program; what follows are the
program's own. The program is not pinned to a core: with --pin 1 behind it, a rawlane of node 1 is.

  rawlane testbed exec 0 ip address
  rawlane testbed exec --name two 1 rawlane bench latency --node 1 --interface eth0 --pin 1`,
		DisableFlagsInUseLine: true,
		Args:                  cli.Arguments(2, math.MaxInt, "want a node's number and a program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := strconv.Atoi(args[0])
			if err != nil {
				return cli.Misuse("node %q: want a number", args[0])
			}
			if flag, _, _ := strings.Cut(args[1], "="); strings.HasPrefix(flag, "-") {
				return cli.Misuse("%s: stands before the node's number (rawlane testbed exec %s ... %d PROGRAM)",
					flag, flag, node)
			}
			return bedExec(cmd.Context(), t.name, node, args[1:])
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List this user's beds",
		Example: "  rawlane testbed list",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("name") {
				return cli.Misuse("--name: all beds are listed (leave it out)")
			}
			names, err := bedNames()
			for _, name := range names {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
					return err
				}
			}
			return err
		},
	}
}

// bedFlags defines the flags of verbs that make a bed.
func bedFlags(cmd *cobra.Command, cfg *testbed.Config) {
	f := cmd.Flags()
	f.IntVarP(&cfg.Nodes, "nodes", "n", 2, "number of nodes")
	f.IntVar(&cfg.NICs, "nics", 1, "network interfaces of each, on networks of their own")
	f.IntVar(&cfg.MTU, "mtu", 1500, "their MTU, in bytes")
}

// validBed checks the flags; nodes is the name of the first one.
func validBed(cfg *testbed.Config, nodes string) error {
	if cfg.Nodes < 1 || cfg.Nodes > testbed.MaxNodes {
		return cli.Misuse("%s %d: want 1 to %d", nodes, cfg.Nodes, testbed.MaxNodes)
	}
	if cfg.NICs < 1 || cfg.NICs > testbed.MaxNICs {
		return cli.Misuse("--nics %d: want 1 to %d", cfg.NICs, testbed.MaxNICs)
	}
	if cfg.MTU < 68 || cfg.MTU > 65535 {
		return cli.Misuse("--mtu %d: want 68 to 65535", cfg.MTU)
	}
	return nil
}

// describeBed prints the nodes.
func describeBed(out io.Writer, cfg testbed.Config) error {
	for k := range cfg.Nodes {
		line := fmt.Sprintf("node %d", k)
		for nic := range cfg.NICs {
			line += fmt.Sprintf("  %s %v %v", testbed.Interface(nic), testbed.MAC(k, nic), testbed.IP(k, nic))
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
