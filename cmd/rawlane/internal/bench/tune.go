package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// tuner measures which algorithm is the quickest for groups of a cluster.
type tuner struct {
	bench
	ranks  []int // of the groups; empty: tunedRanks
	rounds int
	out    string
}

// tunedRanks are sizes of groups, up to that of the cluster, which is another one.
var tunedRanks = []int{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024}

// maxRounds bounds --rounds.
const maxRounds = 1000

// NewTuneCommand returns the verb tune.
func NewTuneCommand() *cobra.Command {
	t := &tuner{rounds: 5, bench: bench{
		name:  "tune",
		short: "Find the quickest barrier for groups of this cluster",
		long: `Measures the algorithms that the model considers, in turns, among the first 2, 3, 4, 6, 8, ... nodes,
and writes the quickest of each size, with where its nodes run, into a file. Of those within
5 % of the least, that is the one with the fewest frames. The mean is the median of the rounds.
A size has no row if the best is what the model chooses, and has no name that a file could have, as
hierarchies of hosts whose nodes are not numbered one after the other: groups get it without a row.

A program that gives the file's table to its barriers (barrier.Config.Table) gets these where its
groups name no algorithm. The file is for reading and for changing by hand; all nodes need the
same one. What it does not have is chosen by the model.

  rawlane tune --nodes 8 --link ring --out barriers.table
  rawlane tune --hostfile hosts --interface eth0 --out barriers.table   (on each machine)
  rawlane bench barrier --nodes 8 --link ring --table barriers.table`,
		iters: 200,
	}}
	cmd := t.command(maxBarriers, "barriers of each algorithm in a round", t.prepare, t.part)
	t.cluster.NICs = 1
	t.cluster.ModeFlag(cmd)
	f := cmd.Flags()
	cli.ListFlag(f, &t.ranks, "ranks", "N,...", "sizes of the groups (default 2,3,4,6,8,... and all nodes)",
		parseRanks)
	f.IntVar(&t.rounds, "rounds", t.rounds, "how often each algorithm has its turn")
	f.StringVar(&t.out, "out", "", "the file to write (it is replaced)")
	t.alike = []string{"ranks", "rounds", "iters"}
	return cmd
}

// parseRanks reads one of the sizes of --ranks.
func parseRanks(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q: want whole numbers", text)
	}
	return n, nil
}

func (t *tuner) prepare(*cobra.Command) error {
	if t.rounds < 1 || t.rounds > maxRounds {
		return cli.Misuse("--rounds %d: want 1 to %d", t.rounds, maxRounds)
	}
	size, err := t.cluster.Size()
	if err != nil {
		return err
	}
	for _, n := range t.ranks {
		if n < 2 || n > size {
			return cli.Misuse("--ranks %d: want 2 to the number of nodes (%d)", n, size)
		}
	}
	t.cluster.Grace = launch.AskTimeout + reportTime
	if t.cluster.Here() && t.cluster.Node != 0 {
		return nil // only node 0 writes, and a host file may tell later which one that is
	}
	return cli.CheckFile("out", t.out)
}

// sizes returns the sizes of groups in a cluster.
func (t *tuner) sizes(nodes int) (all []int) {
	if len(t.ranks) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(t.ranks)))
	}
	for _, n := range append(slices.Clone(tunedRanks), nodes) {
		if n <= nodes && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// part measures the groups one after the other. The nodes that are not in one wait for its means.
func (t *tuner) part(ctx context.Context, n *node) error {
	if n.ep.Node() == 0 {
		if err := cli.CheckFile("out", t.out); err != nil {
			return err
		}
	}
	x, err := cluster.OpenExchanger(n.ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	service, err := barrier.Open(n.ep, barrier.Config{})
	if err != nil {
		return err
	}
	end, err := service.Group(barrier.GroupConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	table := &schedule.Table{}
	for _, ranks := range t.sizes(len(n.ep.Nodes())) {
		n.lines.Say("%d ranks ...", ranks)
		g, err := t.group(n, service, ranks)
		if err != nil {
			return err
		}
		parts, err := g.measure(ctx, x)
		if err != nil {
			return err
		}
		if n.ep.Node() != 0 {
			continue
		}
		if err := g.choose(parts, table); err != nil {
			return err
		}
	}
	if err := t.write(n, table); err != nil {
		return err
	}
	return errors.Join(end.Barrier(ctx), service.Close()) // the others answer until node 0 has all
}

func (t *tuner) write(n *node, table *schedule.Table) error {
	if n.ep.Node() != 0 || t.out == "" {
		return nil
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "# The quickest barriers, as rawlane tune measured them: link %s, %d nodes, %s\n",
		n.form.Link, n.form.Nodes, n.form.Host)
	if _, err := table.WriteTo(text); err != nil {
		return err
	}
	return cli.WriteFile("out", t.out, []byte(text.String()))
}

// tunedGroup is the first nodes of a cluster, which try algorithms.
type tunedGroup struct {
	*tuner
	n          *node
	service    *barrier.Service
	members    barrier.Mask
	ranks      int
	where      string
	algorithms []schedule.Algorithm // the candidates of the model, its own choice first
}

// group returns that of so many nodes. All nodes have the same candidates, in the same order.
func (t *tuner) group(n *node, service *barrier.Service, ranks int) (*tunedGroup, error) {
	g := &tunedGroup{tuner: t, n: n, service: service, ranks: ranks}
	nodes := n.ep.Nodes()
	if ranks > len(nodes) {
		return nil, cli.Misuse("--ranks %d: the cluster has %d nodes", ranks, len(nodes))
	}
	members := make([]mcd.NodeID, ranks)
	for i := range members {
		members[i] = nodes[i].ID
	}
	g.members = barrier.MaskOf(members...)
	if !g.member() {
		return g, nil
	}
	own, err := g.open(schedule.Algorithm{}, 0)
	if err != nil {
		return nil, err
	}
	g.consider(own.Shape())
	return g, own.Close()
}

// consider takes the candidates for a shape.
func (g *tunedGroup) consider(shape schedule.Shape) {
	choices := schedule.Choices(g.ranks)
	if shape.Known() {
		choices = shape.Choices()
	}
	for _, c := range choices {
		g.algorithms = append(g.algorithms, c.Algorithm)
	}
	g.where = shape.String()
}

// member reports whether this node is in the group.
func (g *tunedGroup) member() bool { return g.members.Has(g.n.ep.Node()) }

// open makes the barriers' group of an algorithm: the number tells it apart from the others.
func (g *tunedGroup) open(a schedule.Algorithm, number int) (*barrier.Group, error) {
	return g.service.Group(barrier.GroupConfig{
		ID: uint32(number + 1), Members: g.members, Algorithm: a, PeerTimeout: launch.AskTimeout,
	})
}

// measure gives each algorithm its turn in each round, and returns each node's means at node 0. A
// node that is not in the group has none.
func (g *tunedGroup) measure(ctx context.Context, x *cluster.Exchanger) ([][]byte, error) {
	if !g.member() {
		return x.Gather(ctx, 0, nil)
	}
	groups := make([]*barrier.Group, len(g.algorithms))
	for i, a := range g.algorithms {
		var err error
		if groups[i], err = g.open(a, i+1); err != nil {
			return nil, err
		}
	}
	means := make([]uint64, 0, g.rounds*len(groups)) // in ns, by round
	for range g.rounds {
		for i := range groups {
			samples, _, err := measureBarriers(ctx, groups[i], g.iters, 0)
			if err != nil {
				return nil, err
			}
			sum := uint64(0)
			for _, s := range samples {
				sum += uint64(s)
			}
			means = append(means, sum/uint64(len(samples)))
		}
	}
	own, err := binary.Append(nil, binary.BigEndian, means)
	if err != nil {
		return nil, err
	}
	parts, err := x.Gather(ctx, 0, own)
	for _, group := range groups {
		err = errors.Join(err, group.Close())
	}
	return parts, err
}

// choose prints what each algorithm took, the quickest first, and adds the best to the table,
// unless groups have it without a row.
func (g *tunedGroup) choose(parts [][]byte, table *schedule.Table) error {
	means := make([][]float64, len(g.algorithms)) // in ns, by round, over the members
	for i := range means {
		means[i] = make([]float64, g.rounds)
	}
	for rank, b := range parts[:g.ranks] {
		own := make([]uint64, g.rounds*len(means))
		if used, err := binary.Decode(b, binary.BigEndian, own); err != nil || used != len(b) {
			return fmt.Errorf("node %d has %d means, and not %d (give all the same flags)",
				g.n.ep.Nodes()[rank].ID, len(b)/8, len(own))
		}
		for k, mean := range own {
			means[k%len(means)][k/len(means)] += float64(mean) / float64(g.ranks)
		}
	}
	measured := make([]schedule.Choice, len(means))
	for i, a := range g.algorithms {
		measured[i] = schedule.Choice{Algorithm: a, Cost: time.Duration(median(means[i])), Frames: a.Frames(g.ranks)}
	}
	measured = schedule.Rank(measured)
	best := g.best(measured)
	for i, c := range measured {
		r := &tuneResult{
			result: g.n.form, Ranks: g.ranks, Where: g.where, Frames: c.Frames, Rounds: g.rounds,
			best: i == best, Chosen: i == best && writable(c.Algorithm),
		}
		if r.Chosen {
			table.Set(schedule.Row{Ranks: g.ranks, Where: g.where, Algorithm: c.Algorithm, Mean: c.Cost})
		}
		r.Algo, r.MeanUS = c.Algorithm.String(), cli.Micros(c.Cost)
		if err := g.n.lines.Write(r, g.head(), r.line()); err != nil {
			return err
		}
	}
	return nil
}

// best returns which of those that were measured, the best first, groups are to have: the first
// that can be written, or the model's own choice. That is what they have if the table has no row.
func (g *tunedGroup) best(measured []schedule.Choice) int {
	return slices.IndexFunc(measured, func(c schedule.Choice) bool {
		return writable(c.Algorithm) || c.Algorithm.String() == g.algorithms[0].String()
	})
}

// writable reports whether a table can have an algorithm.
func writable(a schedule.Algorithm) bool {
	_, err := schedule.Parse(a.String())
	return err == nil
}

// tuneResult is one line: an algorithm among so many nodes.
type tuneResult struct {
	result
	Ranks  int    `json:"ranks"`
	Where  string `json:"where"`
	Rounds int    `json:"rounds"`
	Frames int    `json:"frames"`
	Chosen bool   `json:"chosen"`
	best   bool
}

func (g *tunedGroup) head() string {
	return fmt.Sprintf("# rawlane tune: %s, %d nodes, %s; median of %s of %d barriers\n"+
		"# ranks  algorithm                mean (us) frames\n",
		g.n.form.Link, g.n.form.Nodes, g.n.form.Host, cli.Count(g.rounds, "round"), g.iters)
}

func (r *tuneResult) line() string {
	best := ""
	if r.best {
		best = "  the best: " + r.Where
		if !r.Chosen {
			best += " (the model's choice: no row)"
		}
	}
	return fmt.Sprintf("%-8d %-22s %11.2f %6d%s\n", r.Ranks, r.Algo, r.MeanUS, r.Frames, best)
}
