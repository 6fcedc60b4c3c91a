// Package barrier is the verbs that draw barrier schedules and trace barriers.
package barrier

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

const (
	maxShown = 5000        // ranks: the algorithms are tested up to here
	maxDrawn = 512         // ranks in a picture: more lines run into each other
	maxLogP  = time.Second // of each parameter: sums of them stay far from overflow
	anyRank  = -1          // without --rank
)

// NewCommand returns the verb barrier.
func NewCommand() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "barrier VERB",
		Short: "Draw barrier algorithms, predict their time, see who is late",
	}, "which?", newShowCommand(), newTraceCommand())
}

// showVerb draws a schedule.
type showVerb struct {
	name        string
	nodes, nics int
	rank        int
	svg         string
	json        bool
	logp        schedule.LogP
}

func newShowCommand() *cobra.Command {
	s := &showVerb{logp: schedule.DefaultLogP}
	cmd := &cobra.Command{
		Use:   "show [--algo NAME] [--nodes N] [flags]",
		Short: "Draw an algorithm's schedule, and predict its time",
		Long: `Draws who tells whom in a barrier, and predicts by the LogP model how long it takes. A message is in
phase 1 if its sender awaits nothing before, and else one phase after the latest that it awaits:
"1, 2 -> 0" is two messages, "0 <-> 1" one each way, "0 => all" a multicast. With --svg it draws the
model's time instead: a line for each rank, an arrow for each message.

Algorithms: ` + schedule.Names + `.

  rawlane barrier show --algo tree:3 --nodes 13
  rawlane barrier show --algo shuffle --nodes 16 --os 3us --l 17.5us --or 9.5us --gap 9us
  rawlane barrier show --algo auto --nodes 64 --svg auto.svg`,
		Args: cli.NoArguments,
		RunE: s.run,
	}
	f := cmd.Flags()
	f.StringVar(&s.name, "algo", "auto", "the algorithm")
	f.IntVar(&s.nodes, "nodes", 8, "ranks in the barrier")
	f.IntVar(&s.nics, "nics", 1, "networks to spread the messages over")
	f.IntVar(&s.rank, "rank", anyRank, "show this rank's steps alone")
	f.StringVar(&s.svg, "svg", "", "write a space-time diagram to this file")
	f.BoolVar(&s.json, "json", false, "print one JSON object")
	cli.AlgorithmChoice(cmd, "algo")
	f.DurationVar(&s.logp.Os, "os", s.logp.Os, "the sender's processor's time for a message")
	f.DurationVar(&s.logp.L, "l", s.logp.L, "a message's time on its way")
	f.DurationVar(&s.logp.Or, "or", s.logp.Or, "the receiver's processor's time for a message")
	f.DurationVar(&s.logp.Gap, "gap", s.logp.Gap, "least time between two sends, or two receives, of a NIC")
	return cmd
}

func (s *showVerb) validate() error {
	if s.nodes < 1 || s.nodes > maxShown {
		return cli.Misuse("--nodes %d: want 1 to %d", s.nodes, maxShown)
	}
	if s.nics < 1 || s.nics > schedule.MaxNICs {
		return cli.Misuse("--nics %d: want 1 to %d", s.nics, schedule.MaxNICs)
	}
	if s.nics > 1 && (strings.Contains(s.name, "stripe:") || strings.Contains(s.name, "redundant:")) {
		return cli.Misuse("--nics %d: algorithm %q says itself how many", s.nics, s.name)
	}
	if s.rank != anyRank && (s.rank < 0 || s.rank >= s.nodes) {
		return cli.Misuse("--rank %d: want 0 to %d", s.rank, s.nodes-1)
	}
	if s.svg != "" && s.rank != anyRank {
		return cli.Misuse("--rank is for text and JSON: a picture has all ranks")
	}
	if s.svg != "" && s.nodes > maxDrawn {
		return cli.Misuse("--svg with --nodes %d: want 1 to %d", s.nodes, maxDrawn)
	}
	for _, p := range []struct {
		flag string
		time time.Duration
	}{{"os", s.logp.Os}, {"l", s.logp.L}, {"or", s.logp.Or}, {"gap", s.logp.Gap}} {
		if p.time < 0 || p.time > maxLogP {
			return cli.Misuse("--%s %v: want 0 to %v", p.flag, p.time, maxLogP)
		}
	}
	return nil
}

// algorithm returns the algorithm of the flags, over their number of networks.
func (s *showVerb) algorithm() (schedule.Algorithm, error) {
	if s.name == "auto" {
		return schedule.Auto(s.networks()...), nil
	}
	a, err := schedule.Parse(s.name)
	if err != nil {
		return a, cli.AsMisuse(err)
	}
	if s.nics > 1 {
		a = schedule.Stripe(a, s.nics)
	}
	return a, nil
}

// networks returns the parameters of each network.
func (s *showVerb) networks() []schedule.LogP {
	return slices.Repeat([]schedule.LogP{s.logp}, s.nics)
}

func (s *showVerb) run(cmd *cobra.Command, _ []string) error {
	if err := s.validate(); err != nil {
		return err
	}
	a, err := s.algorithm()
	if err != nil {
		return err
	}
	p, err := s.plan(cmd.Context(), a)
	if err != nil {
		return err
	}
	if s.svg != "" {
		if err := writePicture(s.svg, p); err != nil {
			return err
		}
	}
	return cli.Write(cmd.OutOrStdout(), s.json, p.result(s.rank), func(w io.Writer) {
		switch {
		case s.rank != anyRank:
			p.writeRank(w, s.rank)
		case s.svg != "":
			fmt.Fprintf(w, "%s\ndrawn in %s\n%s", p.headline(), s.svg, p.choiceTable())
		default:
			p.writeText(w)
		}
	})
}
