package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
)

// switchVerb forwards frames between network interfaces.
type switchVerb struct {
	json             bool
	ageing, duration time.Duration
}

// NewSwitchCommand returns the verb switch.
func NewSwitchCommand() *cobra.Command {
	s := &switchVerb{}
	cmd := &cobra.Command{
		Use:   "switch PORT PORT... [flags]",
		Short: "Be a VLAN-aware learning switch between network interfaces",
		Long: `Forwards frames between network interfaces as a switch does, until it is interrupted; then it prints
what it has counted. A PORT is an interface with, behind a colon, what its port is:

  eth1               in all VIDs; tags pass as they are
  eth1:access=5      untagged, in VID 5 alone
  eth1:trunk=1-4,7   tagged, in these VIDs

A tag is one of 802.1Q (TPID 0x8100). Frames with a service tag of 802.1ad (0x88a8) are dropped, and
count as not accepted.

A port whose interface is down takes no part until that is up again; the switch ends when an interface
is removed. There is no spanning tree: do not close a loop. Frames are forwarded as they are, so senders of IP
must not leave checksums and segmentation to a NIC (ethtool -K NIC tx off).

  rawlane switch eth1 eth2:access=5 eth3:trunk=1-4,7`,
		Args: cli.Arguments(2, math.MaxInt, "a switch needs two ports at least"),
		RunE: s.run,
	}
	f := cmd.Flags()
	f.BoolVar(&s.json, "json", false, "print the counters as JSON")
	f.DurationVar(&s.ageing, "ageing", l2switch.DefaultAgeing,
		"how long an address is remembered that nobody sends from")
	f.DurationVar(&s.duration, "duration", 0, "end after this time")
	return cmd
}

func (s *switchVerb) validate() error {
	if s.ageing <= 0 || s.duration < 0 {
		return cli.Misuse("--ageing %v, --duration %v: want more than 0", s.ageing, s.duration)
	}
	return nil
}

func (s *switchVerb) run(cmd *cobra.Command, args []string) error {
	ports, err := parsePorts(args)
	if err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	f, err := openForwarder(ports, l2switch.Config{Ageing: s.ageing}, cmd.PrintErrf)
	if err != nil {
		return err
	}
	cmd.PrintErrf("switching between %s; interrupt to end\n", strings.Join(args, ", "))
	err = f.run(ctx)
	counters := f.counters()
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return cli.Write(cmd.OutOrStdout(), s.json, counters, counters.print)
}

func parsePorts(args []string) (ports []*switchPort, err error) {
	for _, arg := range args {
		p, err := parsePort(arg)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ports, func(q *switchPort) bool { return q.name == p.name }) {
			return nil, cli.Misuse("port %s: given twice", p.name)
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func parsePort(arg string) (*switchPort, error) {
	name, mode, given := strings.Cut(arg, ":")
	kind, list, _ := strings.Cut(mode, "=")
	p := &switchPort{name: name} // in all VLANs
	switch {
	case name != "" && !given:
		return p, nil
	case name == "" || kind != "access" && kind != "trunk":
		return p, wrongPort(arg)
	}
	vids, err := parseVIDs(list)
	switch {
	case err != nil:
		return p, cli.Misuse("port %q: %v", arg, err)
	case kind == "trunk":
		p.kind = l2switch.Trunk(vids...)
	case len(vids) == 1:
		p.kind = l2switch.Access(vids[0])
	default:
		return p, wrongPort(arg)
	}
	return p, nil
}

func wrongPort(arg string) error {
	return cli.Misuse("port %q: want INTERFACE, INTERFACE:access=VID or INTERFACE:trunk=VID,VID-VID,...", arg)
}

// parseVIDs reads VIDs and ranges of them, separated by commas, as route vlans prints them.
func parseVIDs(list string) (vids []transport.VID, err error) {
	for _, field := range strings.Split(list, ",") {
		first, last, ok := cli.ParseSpan(field, 1, uint16(transport.MaxVID))
		if !ok {
			return nil, fmt.Errorf("VID %q: want 1 to %d, or a range such as 2-5", field, transport.MaxVID)
		}
		for vid := first; vid <= last; vid++ {
			vids = append(vids, transport.VID(vid))
		}
	}
	return vids, nil
}

// switchCounters is the counters of a switch and its ports.
type switchCounters struct {
	Switch l2switch.Counters `json:"switch"`
	Ports  []portCounters    `json:"ports"`
}

type portCounters struct {
	Name string `json:"name"`
	transport.Counters
	TxDropped uint64 `json:"tx_dropped"` // for lack of room on the way out
}

func (c *switchCounters) print(out io.Writer) {
	s := &c.Switch
	fmt.Fprintf(out, "forwarded %d, flooded %d, multicast %d, dropped %d; %d addresses\n",
		s.Forwarded, s.Flooded, s.Multicast, s.Dropped(), s.Addresses)
	fmt.Fprintf(out, "%-12s %12s %12s %12s %12s\n", "# Port", "rx frames", "rx dropped", "tx frames", "tx dropped")
	for _, p := range c.Ports {
		fmt.Fprintf(out, "%-12s %12d %12d %12d %12d\n",
			p.Name, p.RxFrames, p.RxDropped, p.TxFrames, p.TxDropped+p.TxRefused)
	}
}
