package barrier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// traceSchema is the version of traceResult as JSON. docs/bench-json.md describes it.
const traceSchema = 1

// traceVerb runs barriers and shows the slowest of them.
type traceVerb struct {
	cluster launch.ClusterFlags
	algo    []string
	iters   int
	late    lateNode
	json    bool
}

// lateNode is a flag: a node, and its delay before every barrier.
type lateNode struct {
	node int
	by   time.Duration
	text string // as it was given
}

// Set parses the flag.
func (l *lateNode) Set(text string) error {
	node, by, found := strings.Cut(text, ":")
	n, err := strconv.Atoi(node)
	d, err2 := time.ParseDuration(by)
	if !found || err != nil || err2 != nil || n < 0 || d < 0 {
		return fmt.Errorf("%q is not a node and a time (want for example 3:200us)", text)
	}
	*l = lateNode{n, d, text}
	return nil
}

// String returns the flag as it was given.
func (l *lateNode) String() string { return l.text }

// Type names the value in the help.
func (l *lateNode) Type() string { return "NODE:TIME" }

// maxTraces bounds --iters: each node keeps a trace of each barrier.
const maxTraces = 10_000

func newTraceCommand() *cobra.Command {
	b := &traceVerb{algo: []string{"auto"}}
	cmd := &cobra.Command{
		Use:   "trace [flags]",
		Short: "Run barriers, and see who came when, who was last, and how long each step took",
		Long: `Runs some barriers among all nodes and shows the slowest of them, with one row per node, the first to
come on top. Times are in microseconds before the node left: nodes leave a barrier a message apart,
whatever their clocks show, so that the rows can be compared to within a message's time.

    came     when the node entered the barrier
    step     when it had all messages of a step; and from whom the last one came

--late has a node come late to every barrier, to see how that looks.

  rawlane barrier trace --nodes 8 --algo tree:3
  rawlane barrier trace --nodes 4 --link ring --late 2:1ms`,
		Args: cli.NoArguments,
		RunE: b.run,
	}
	b.cluster.Register(cmd)
	b.cluster.NICsFlag(cmd)
	b.cluster.ModeFlag(cmd)
	f := cmd.Flags()
	cli.AlgorithmsFlag(cmd, &b.algo, "algo", "algorithm")
	f.IntVar(&b.iters, "iters", 100, "barriers to run")
	f.Var(&b.late, "late", "have this node come late by this time")
	f.BoolVar(&b.json, "json", false, "print one JSON object")
	return cmd
}

func (b *traceVerb) validate() error {
	if b.iters < 1 || b.iters > maxTraces {
		return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxTraces)
	}
	if len(b.algo) != 1 {
		return cli.Misuse("--algo %s: want one", strings.Join(b.algo, ","))
	}
	if err := b.cluster.Validate(); err != nil {
		return err
	}
	size, err := b.cluster.Size()
	if err == nil && b.late.node >= size {
		err = b.cluster.NoSuchNode(fmt.Sprintf("--late %v", &b.late), size)
	}
	return err
}

func (b *traceVerb) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	alike := launch.Alike(cmd, "algo", "iters", "late", "nics")
	return b.cluster.RunNodes(cmd, alike, func(ctx context.Context, ep *mcd.Endpoint, _ string) error {
		return b.trace(ctx, ep, cmd.OutOrStdout())
	})
}

// trace is the part of one node.
func (b *traceVerb) trace(ctx context.Context, ep *mcd.Endpoint, out io.Writer) error {
	isLate := func(n mcd.Node) bool { return int(n.ID) == b.late.node }
	if nodes := ep.Nodes(); !slices.ContainsFunc(nodes, isLate) && b.late.text != "" { // by a host file
		return cli.Misuse("--late %v: none of the %d nodes has that number", &b.late, len(nodes))
	}
	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	service, err := barrier.Open(ep, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := service.Group(barrier.GroupConfig{
		Algorithm: b.cluster.Algorithm(b.algo[0]), PeerTimeout: launch.AskTimeout,
	})
	if err != nil {
		return err
	}
	if err := g.Barrier(ctx); err != nil { // in the first one, nodes may still be starting
		return err
	}
	traces := make([]barrier.Trace, b.iters)
	for i := range traces {
		if b.late.by > 0 && int(ep.Node()) == b.late.node {
			_ = cli.Pause(ctx, b.late.by) // the barrier looks at ctx
		}
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		traces[i], _ = g.Trace(0)
	}
	own, err := json.Marshal(traces)
	if err != nil {
		return err
	}
	parts, err := x.Gather(ctx, 0, own)
	if err == nil && ep.Node() == 0 {
		err = b.show(ep, g, parts, out)
	}
	return errors.Join(err, service.Close())
}

// traceResult is what barrier trace prints as JSON: the slowest barrier.
type traceResult struct {
	Schema     int          `json:"schema"`
	Algo       string       `json:"algo"`
	Nodes      int          `json:"nodes"`
	Barriers   int          `json:"barriers"`
	Generation uint32       `json:"generation"`
	Rows       []traceRow   `json:"rows"` // the first to come on top
	Last       []lastToCome `json:"last"` // the nodes that came last, and how often
}

type traceRow struct {
	Node mcd.NodeID `json:"node"`
	barrier.Trace
}

type lastToCome struct {
	Node  mcd.NodeID `json:"node"`
	Count int        `json:"count"`
}

// show prints the slowest barrier.
func (b *traceVerb) show(ep *mcd.Endpoint, g *barrier.Group, parts [][]byte, out io.Writer) error {
	nodes := ep.Nodes()
	all := make([][]barrier.Trace, len(nodes))
	for k, n := range nodes {
		if err := json.Unmarshal(parts[k], &all[k]); err != nil {
			return fmt.Errorf("node %d: %w", n.ID, err)
		}
		if len(all[k]) != b.iters {
			return fmt.Errorf("node %d has %d traces, and not %d (give all the same --iters)",
				n.ID, len(all[k]), b.iters)
		}
	}
	t := newTraceResult(nodes, all)
	t.Algo = g.Algorithm().String()
	return cli.Write(out, b.json, t, func(w io.Writer) { t.print(w, g.Algorithm()) })
}

// newTraceResult finds the slowest barrier, and counts who came last.
func newTraceResult(nodes []mcd.Node, all [][]barrier.Trace) *traceResult {
	t := &traceResult{Schema: traceSchema, Nodes: len(nodes), Barriers: len(all[0])}
	counts, slowest := make([]int, len(nodes)), 0
	longest := time.Duration(-1)
	for i := range all[0] {
		last := 0
		for k := range nodes {
			if all[k][i].Left < all[last][i].Left {
				last = k
			}
			if all[k][i].Left > longest {
				longest, slowest = all[k][i].Left, i
			}
		}
		counts[last]++
	}
	for k, n := range nodes {
		t.Rows = append(t.Rows, traceRow{n.ID, all[k][slowest]})
		if counts[k] > 0 {
			t.Last = append(t.Last, lastToCome{n.ID, counts[k]})
		}
	}
	t.Generation = t.Rows[0].Generation
	slices.SortStableFunc(t.Rows, func(a, b traceRow) int { return cmp.Compare(b.Left, a.Left) })
	slices.SortStableFunc(t.Last, func(a, b lastToCome) int { return b.Count - a.Count })
	return t
}

const traceBar = 30 // characters

func (t *traceResult) print(out io.Writer, a schedule.Algorithm) {
	longest := max(t.Rows[0].Left, 1)
	fmt.Fprintf(out, "# rawlane barrier trace: %d nodes, %v; the slowest of %d barriers was generation %d\n"+
		"# node %10s  %-*s  steps (us before the exit, and who was last)\n",
		t.Nodes, a, t.Barriers, t.Generation, "came (us)", traceBar, "waits")
	for _, r := range t.Rows {
		n := int(int64(traceBar) * int64(r.Left) / int64(longest))
		bar := strings.Repeat(" ", traceBar-n) + strings.Repeat("=", n)
		fmt.Fprintf(out, "%6d %10.1f  %-*s  %s\n", r.Node, -cli.Micros(r.Left), traceBar, bar, r.steps())
	}
	fmt.Fprint(out, "# last to come:")
	for i, l := range t.Last {
		if i == 5 {
			fmt.Fprint(out, " ...")
			break
		}
		fmt.Fprintf(out, " node %d (%d of %d)", l.Node, l.Count, t.Barriers)
	}
	fmt.Fprintln(out)
}

// steps says when each step was done, and whose message it had waited for.
func (r *traceRow) steps() string {
	var words []string
	for _, s := range r.Steps {
		if len(s.Arrivals) == 0 {
			continue // a step without messages to await
		}
		last := slices.MaxFunc(s.Arrivals, func(a, b barrier.TraceArrival) int { return cmp.Compare(a.At, b.At) })
		words = append(words, fmt.Sprintf("%.1f node %d", cli.Micros(s.Done-r.Left), last.Node))
	}
	return strings.Join(words, ", ")
}
