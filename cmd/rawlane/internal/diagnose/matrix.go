package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/pathtest"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// matrixVerb measures or checks the paths between all pairs of nodes.
type matrixVerb struct {
	pathFlags
	rate  time.Duration
	check bool
}

// NewMatrixCommand returns the verb matrix.
func NewMatrixCommand() *cobra.Command {
	m := new(matrixVerb)
	cmd := &cobra.Command{
		Use:   "matrix [flags]",
		Short: "Measure all pairs of nodes, by VID; or find what is wrong with the paths between them",
		Long: `Each node in turn measures its paths to all others: round trips of probes, and what full frames
come to that go there and back at once. Node 0 prints what all have found.

With --check it looks instead for loops, black holes (a pair that hears nothing of each other by one
VID, and does by others), one-way paths, duplicate addresses, tags that switches change, and MTUs
that are too small; and exits with 1 if it finds any.

Without --interface it starts nodes of its own. On real machines, give --interface and, unless a host
file says it, --node and --nodes, and run the same command on each.

  rawlane matrix --nodes 4 --vids 1,2
  rawlane matrix --check --nodes 4 --vids untagged,1,2`,
		Args: cli.NoArguments,
		RunE: m.run,
	}
	m.flags(cmd, pathtest.DefaultCount)
	f := cmd.Flags()
	f.DurationVar(&m.rate, "rate", 50*time.Millisecond, "for how long each path's rate is measured; 0: not at all")
	f.BoolVar(&m.check, "check", false, "look for faults")
	return cmd
}

// row is the result of one node.
type row struct {
	Paths  []pathRecord      `json:"paths,omitempty"`
	Faults []pathtest.Record `json:"faults,omitempty"`
	Error  string            `json:"error,omitempty"`
}

func (m *matrixVerb) run(cmd *cobra.Command, _ []string) error {
	if m.rate < 0 {
		return cli.Misuse("--rate %v: want 0 or more", m.rate)
	}
	if m.check && cmd.Flags().Changed("rate") {
		return cli.Misuse("--rate and --check: want one of the two (a check measures no rate)")
	}
	if err := m.validate(); err != nil {
		return err
	}
	nodes, closeAll, err := m.open(cmd)
	if err != nil {
		return err
	}
	note := cli.NewProgress(cmd.ErrOrStderr())
	var rows []row
	if m.cluster.Here() {
		rows, err = m.inTurn(cmd.Context(), nodes[0], note)
	} else {
		for _, ep := range nodes {
			note.Say("node %d ...", ep.Node())
			rows = append(rows, m.row(cmd.Context(), ep))
		}
		err = cmd.Context().Err() // and not what it has made of a row
	}
	note.Clear()
	if nodes[0].Node() == 0 && (err == nil || m.cluster.Here()) {
		err = m.print(cmd, rows, err)
	}
	return errors.Join(err, closeAll())
}

// inTurn has the nodes, each of which runs on a machine of its own, take their turns: a node whose
// turn it is has the others wait in a gather. Node 0 gets the rows of all; with an error, those
// that have come are filled.
func (m *matrixVerb) inTurn(ctx context.Context, ep *mcd.Endpoint, note cli.Progress) (rows []row, err error) {
	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return nil, err
	}
	defer func() { _ = x.Close() }() // all have what they need
	rows = make([]row, len(ep.Nodes()))
	for k, n := range ep.Nodes() {
		note.Say("node %d ...", n.ID)
		var own []byte
		if n.ID == ep.Node() {
			if own, err = json.Marshal(m.row(ctx, ep)); err != nil {
				return rows, err
			}
		}
		all, err := x.Gather(ctx, 0, own)
		switch {
		case ep.Node() != 0 && k == len(ep.Nodes())-1 && ctx.Err() == nil && errors.Is(err, cluster.ErrIncomplete):
			return nil, nil // node 0 has all rows, and its last word may be lost
		case err != nil:
			return rows, err
		case ep.Node() != 0:
			continue
		}
		if err := json.Unmarshal(all[k], &rows[k]); err != nil {
			return rows, fmt.Errorf("node %d: %w", n.ID, err)
		}
	}
	return rows, nil
}

// row is one node's turn.
func (m *matrixVerb) row(ctx context.Context, ep *mcd.Endpoint) (r row) {
	err := m.fits(ep)
	switch {
	case err != nil:
	case m.check:
		var faults []pathtest.Fault
		faults, err = pathtest.Check(ctx, ep, 0, m.tags, m.options())
		for _, f := range faults {
			r.Faults = append(r.Faults, f.Record())
		}
	default:
		err = m.measureAll(ctx, ep, &r)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (m *matrixVerb) measureAll(ctx context.Context, ep *mcd.Endpoint, r *row) error {
	for _, n := range ep.Nodes() {
		if n.ID == ep.Node() {
			continue
		}
		for _, tag := range m.tags {
			path := mcd.Path{Node: n.ID, OptionalTag: tag}
			p, err := m.measure(ctx, ep, path)
			if err == nil && p.Answered > 0 && m.rate > 0 {
				var rate float64
				rate, err = pathtest.EchoRate(ctx, ep, path, m.options(), m.rate)
				p.MBPerS = rate / 1e6
			}
			if err != nil {
				return err
			}
			r.Paths = append(r.Paths, p)
		}
	}
	return nil
}

// print prints the rows, and returns what has failed: that some are not there, or what a node says.
func (m *matrixVerb) print(cmd *cobra.Command, rows []row, failed error) error {
	for k, r := range rows {
		if failed == nil && r.Error != "" {
			failed = fmt.Errorf("node %d: %s", k, r.Error)
		}
	}
	found := func(r row) bool { return len(r.Paths) > 0 || len(r.Faults) > 0 }
	if failed != nil && !slices.ContainsFunc(rows, found) {
		return failed
	}
	var err error
	switch {
	case m.check:
		err = m.printFaults(cmd, rows)
	case m.json:
		err = m.printPaths(cmd.OutOrStdout(), rows)
	default:
		err = cli.Write(cmd.OutOrStdout(), false, nil, func(w io.Writer) { m.printTables(w, rows) })
		err = errors.Join(err, anyAnswered(rows))
	}
	return errors.Join(err, failed)
}

func (m *matrixVerb) printFaults(cmd *cobra.Command, rows []row) error {
	var all []pathtest.Record
	for _, r := range rows {
		for _, f := range r.Faults { // both ends of a pair see most of them
			if !slices.ContainsFunc(all, func(g pathtest.Record) bool { return g.Text == f.Text }) {
				all = append(all, f)
			}
		}
	}
	lines := cli.Lines{Out: cmd.OutOrStdout(), JSON: m.json}
	for _, f := range all {
		if err := lines.Write(f, "", f.Text+"\n"); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("faults found: %d", len(all))
	}
	if m.json {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "no fault found: %s, by %s\n",
		cli.Count(len(rows), "node"), m.tags.words())
	return err
}

func (m *matrixVerb) printPaths(out io.Writer, rows []row) error {
	for _, r := range rows {
		for i := range r.Paths {
			if err := cli.WriteJSON(out, &r.Paths[i]); err != nil {
				return err
			}
		}
	}
	return anyAnswered(rows)
}

// anyAnswered returns an error if all paths are silent.
func anyAnswered(rows []row) error {
	for _, r := range rows {
		for _, p := range r.Paths {
			if p.Answered > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("all pairs, by these tags: %w "+
		"(rawlane ping NODE --all-vids shows by which VIDs a node answers)", errSilence)
}

// printTables prints a table for each tag: a row for each sender, a column for each receiver.
func (m *matrixVerb) printTables(out io.Writer, rows []row) {
	p50 := fmt.Sprintf("round trip, p50 of %d (us), %d bytes", m.count, m.size)
	for _, tag := range m.tags {
		m.printTable(out, rows, tag, p50, func(p *pathRecord) float64 { return p.P50US })
		if m.rate > 0 {
			m.printTable(out, rows, tag, "full frames, there and back at once (MB/s)",
				func(p *pathRecord) float64 { return p.MBPerS })
		}
	}
}

func (m *matrixVerb) printTable(
	out io.Writer, rows []row, tag transport.OptionalTag, what string, value func(*pathRecord) float64,
) {
	fmt.Fprintf(out, "# rawlane matrix: %s, %s, %v: %s\n# from\\to",
		m.cluster.Kind, cli.Count(len(rows), "node"), tag, what)
	for k := range rows {
		fmt.Fprintf(out, "%10d", k)
	}
	fmt.Fprintln(out)
	for k, r := range rows {
		fmt.Fprintf(out, "%-9d", k)
		for to := range rows {
			i := slices.IndexFunc(r.Paths, func(p pathRecord) bool { return int(p.To) == to && p.by() == tag })
			switch {
			case i < 0:
				fmt.Fprintf(out, "%10s", "-")
			case r.Paths[i].Answered == 0:
				fmt.Fprintf(out, "%10s", "dead")
			default:
				fmt.Fprintf(out, "%10.2f", value(&r.Paths[i]))
			}
		}
		fmt.Fprintln(out)
	}
}
