//go:build linux

// Command mbcf answers: what do tables 1 to 3 of MPI/MBCF's paper look like with package mpi?
// Round trips and bandwidth are those of two ranks in two namespaces; the traffic of programs is
// that of the NAS Parallel Benchmarks that are examples here, with eight ranks.
//
// With -paper it measures table 3 alone, as in the paper: receives are all offered to their senders
// (mpi.Config{OfferFrom: 1, EagerLimit: mpi.MaxEagerLimit}), and those of MG and of LU's faces name
// no source.
//
// Source: MBCF §2.3 tables 1, 2; §3.3 table 3.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
	"github.com/rawlane/rawlane/sim/mbcf"
)

var (
	class   = flag.String("class", "W", "size of the programs' problems: S, W or A")
	asPaper = flag.Bool("paper", false, "table 3 alone, of messages that go as in the paper: all receives offered")
)

func main() {
	b := harness.Bench{Name: "mbcf", Link: "a veth pair between two namespaces, and a bridge between more",
		Rounds: 3, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// ranks is how many the programs have, as in the paper.
const ranks = 8

// paper is what its table 3 says; package sim/mbcf has the others.
var paper = struct {
	data, msgs, written map[string]float64
}{
	data:    map[string]float64{"EP": 0, "MG": 9.68, "CG": 12.69, "IS": 13.58, "LU": 1.89},
	msgs:    map[string]float64{"EP": 4, "MG": 4670, "CG": 2138, "IS": 466, "LU": 1199},
	written: map[string]float64{"EP": 51.10, "MG": 0.01, "CG": 53.33, "IS": 99.22, "LU": 13.37},
}

var (
	tripSizes = []int{0, 4, 16, 64, 256, 1024, 4096}
	rateSizes = []int{4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}
	kernels   = []string{"EP", "MG", "CG", "IS", "LU"}
)

// tables are those of the paper, with a row for each of its columns.
type tables struct {
	trips, oneWay, bothWays, data, msgs, written, read *harness.Table
}

// newTable makes a table whose rows have what the paper says beside them, and the ratio where that
// is not 0.00, as the data rate of EP is.
func newTable(title, unit string, says map[string]float64) *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("%s\n%-14s %12s %12s %12s", title, "", "the paper", "rawlane", "ratio"),
		Text: func(r *harness.Row) string {
			ratio := "-"
			if says[r.Name] != 0 {
				ratio = fmt.Sprintf("%.2f", r.Median()/says[r.Name])
			}
			return fmt.Sprintf("%-14s %12.2f %12.2f %12s", r.Name, says[r.Name], r.Median(), ratio)
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"table": title, "name": r.Name, unit: r.Median(), unit + "_paper": says[r.Name]}
		},
	}
}

// newTableBeside makes a table of what the paper has nothing of.
func newTableBeside(title, unit string) *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("%s\n%-14s %12s", title, "", "rawlane"),
		Text:  func(r *harness.Row) string { return fmt.Sprintf("%-14s %12.2f", r.Name, r.Median()) },
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"table": title, "name": r.Name, unit: r.Median()}
		},
	}
}

// newStreamTable makes table 2. The paper has one stream, one way, on a network of either mode; the
// ratio is to full duplex, which veth pairs have as well.
func newStreamTable() *harness.Table {
	const title = "Table 2: bandwidth one way, MB/s"
	half, full := inBytes(mbcf.HalfDuplexStreams()), inBytes(mbcf.FullDuplexStreams())
	return &harness.Table{
		Title: fmt.Sprintf("%s\n%-14s %12s %12s %12s %12s",
			title, "", "half duplex", "full duplex", "rawlane", "ratio"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-14s %12.2f %12.2f %12.2f %12.2f",
				r.Name, half[r.Name], full[r.Name], r.Median(), r.Median()/full[r.Name])
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"table": title, "name": r.Name, "mb_per_s": r.Median(),
				"mb_per_s_paper": full[r.Name], "mb_per_s_paper_half_duplex": half[r.Name]}
		},
	}
}

// inBytes returns what the paper measured, by rows' names.
func inBytes(e mbcf.Experiment) map[string]float64 {
	named := map[string]float64{}
	for _, v := range e.Paper {
		named[bytes(v.Bytes)] = v.Value
	}
	return named
}

func bytes(n int) string { return strconv.Itoa(n) + " bytes" }

func newTables() (t tables, all []*harness.Table) {
	t = tables{
		trips:    newTable("Table 1: round trip, us", "us", inBytes(mbcf.RoundTrips())),
		oneWay:   newStreamTable(),
		bothWays: newTableBeside("Beside it: bandwidth both ways at once, MB/s, of each", "mb_per_s"),
		data:     newTable("Table 3: data rate of all ranks, MB/s", "mb_per_s", paper.data),
		msgs:     newTable("Table 3: messages of all ranks a second", "msgs_per_s", paper.msgs),
		written:  newTable("Table 3: share of the bytes that senders write into receives, %", "percent", paper.written),
		read:     newTableBeside("Beside it: share of the bytes that receivers read into receives, %", "percent"),
	}
	if *asPaper {
		return t, []*harness.Table{t.data, t.msgs, t.written, t.read}
	}
	return t, []*harness.Table{t.trips, t.oneWay, t.bothWays, t.data, t.msgs, t.written, t.read}
}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if !slices.Contains([]string{"S", "W", "A"}, *class) {
		return r, harness.Misuse("-class %q: want S, W or A", *class)
	}
	t, all := newTables()
	r.Tables = all
	if b.Rows {
		return rows(), nil
	}
	pair, err := netpair.New()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	var variants []harness.Variant
	if !*asPaper {
		variants = t.messages(b, pair)
	}
	for _, name := range kernels {
		file := filepath.Join(b.Dir, strings.ToLower(name))
		if err := harness.BuildTool(ctx, "examples/"+strings.ToLower(name), file); err != nil {
			return r, err
		}
		variants = append(variants, harness.Variant{Name: name, Run: func(ctx context.Context) error {
			return t.program(ctx, &b.Programs, name, file)
		}})
	}
	return r, b.RunRounds(ctx, variants)
}

// messages are the variants of tables 1 and 2.
func (t *tables) messages(b *harness.Bench, pair *netpair.Pair) []harness.Variant {
	return []harness.Variant{
		{Name: "round trips", Run: func(ctx context.Context) error {
			return messages(ctx, pair, b, "latency", tripSizes, func(l line) {
				t.trips.Add(bytes(l.Size), 2*l.P50)
			})
		}},
		{Name: "one way", Run: func(ctx context.Context) error {
			return messages(ctx, pair, b, "bandwidth", rateSizes, func(l line) {
				t.oneWay.Add(bytes(l.Size), l.MB)
			})
		}},
		{Name: "both ways", Run: func(ctx context.Context) error {
			return messages(ctx, pair, b, "bibw", rateSizes, func(l line) {
				t.bothWays.Add(bytes(l.Size), l.MB/2)
			})
		}},
	}
}

// rows is what the tables have rows for.
func rows() harness.Report {
	var all []harness.Variant
	if !*asPaper {
		all = append(all, harness.Variant{Name: bytes(0)})
		for _, size := range rateSizes {
			all = append(all, harness.Variant{Name: bytes(size)})
		}
	}
	for _, name := range kernels {
		all = append(all, harness.Variant{Name: name})
	}
	return harness.RowsOf(all)
}

// line is what rawlane's command prints.
type line struct {
	Size int     `json:"size_bytes"`
	P50  float64 `json:"p50_us"`
	MB   float64 `json:"mb_per_s"`
}

// messages measures messages of two ranks.
func messages(
	ctx context.Context, p *netpair.Pair, b *harness.Bench, what string, sizes []int, add func(line),
) error {
	lines, err := netpair.Lines[line](ctx, p, b.Programs.Rawlane,
		"mpi", what, "--link=ring", "--size", harness.List(sizes), "--iters", strconv.Itoa(b.Iters))
	for _, l := range lines {
		add(l)
	}
	return err
}

// program runs one of the NAS Parallel Benchmarks, and reads what it says of its messages.
func (t *tables) program(ctx context.Context, programs *harness.Programs, name, file string) error {
	args := []string{"run", "--link=ring", "-n", strconv.Itoa(ranks), file, "-class", *class}
	if *asPaper {
		args = append(args, "-paper")
	}
	cmd := programs.Command(ctx, args...)
	var why strings.Builder
	cmd.Stderr = &why
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(why.String()))
	}
	for what, table := range map[string]*harness.Table{
		"Data, MB/s": t.data, "Messages/s": t.msgs, "Written, %": t.written, "Read, %": t.read,
	} {
		_, said, found := strings.Cut(string(out), " "+what)
		said, _, _ = strings.Cut(strings.TrimLeft(said, " ="), "\n")
		value, err := strconv.ParseFloat(said, 64)
		if !found || err != nil {
			return fmt.Errorf("%s does not say its %s: %q", name, what, out)
		}
		table.Add(name, value)
	}
	return nil
}
