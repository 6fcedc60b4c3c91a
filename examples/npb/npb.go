// Package npb is what those of the NAS Parallel Benchmarks that are examples here have in common:
// their random numbers, their command line, the clock and the report.
//
// Source: D. Bailey et al., The NAS Parallel Benchmarks, NASA Ames RNR-94-007; the problems' sizes
// and the values that verify a result are those of NPB 3.4.
package npb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mpi"
)

// Options are those of the command line.
type Options struct {
	Class string // the problem's size: one of S, W, A
	Paper bool   // as MPI/MBCF's paper has it, where rawlane or a later NPB differs
}

// Kernel solves a benchmark's problem of a class. All ranks call it; what rank 0 prints is shown.
type Kernel func(ctx context.Context, c *mpi.Comm, o Options, out io.Writer) (Result, error)

// Main is the main function of a benchmark. Where nobody has started it as one of several
// processes, it has four ranks.
func Main(name string, kernel Kernel) {
	o, err := parse(strings.ToLower(name), os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // parse has said why
	}
	start.Main(start.Config{Nodes: 4}, program(name, kernel, o, os.Stdout))
}

// Run is Main for tests: on a fabric.
func Run(ctx context.Context, ranks int, name string, kernel Kernel, class string, out io.Writer) error {
	return start.Run(ctx, start.Config{Nodes: ranks}, program(name, kernel, Options{Class: class}, out))
}

// Part is Run of a part of a benchmark: begin returns each rank's, and Part what they take.
func Part(
	ctx context.Context, ranks int, begin func(*mpi.Comm) (part func(context.Context) error, err error),
) (got Timed, err error) {
	kernel := func(ctx context.Context, c *mpi.Comm, _ Options, _ io.Writer) (r Result, err error) {
		part, err := begin(c)
		if err != nil {
			return r, err
		}
		r.Timed, err = Measure(ctx, c, func() error { return part(ctx) })
		if c.Rank() == 0 {
			got = r.Timed
		}
		return r, err
	}
	err = Run(ctx, ranks, "part", kernel, "S", io.Discard)
	return got, err
}

// PowerOfTwo returns which power of two the number of a benchmark's processes is.
func PowerOfTwo(name string, processes int) (power int, err error) {
	power = bits.Len(uint(processes)) - 1
	if processes != 1<<power {
		return 0, fmt.Errorf("%d processes: %s wants a power of two, such as %d", processes, name, 1<<power)
	}
	return power, nil
}

// IsOff reports whether a result differs from the one that is wanted by more than the tolerance,
// which is relative, or is no number.
func IsOff(got, want, tolerance float64) bool {
	return !(math.Abs(got-want)/want <= tolerance)
}

// classes are the sizes of the problems: a sample, a workstation's, and the smallest real one.
func classes() []string { return []string{"S", "W", "A"} }

// messages returns how messages go: as package mpi has them, or as MPI/MBCF does. There all
// receives are offered to their senders, and what nobody waits for goes with its bytes. Messages
// of more than a record are read by their receivers even so.
//
// Source: MBCF §2.2.
func messages(paper bool) mpi.Config {
	if !paper {
		return mpi.Config{}
	}
	return mpi.Config{OfferFrom: 1, EagerLimit: mpi.MaxEagerLimit}
}

// parse reads the command line. It prints what is wrong with it, and how to use it.
func parse(program string, args []string, stderr io.Writer) (o Options, err error) {
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.Class = "S"
	flags.Func("class", "the problem's `size`: S, W or A (default S)", func(value string) error {
		o.Class = strings.ToUpper(value)
		if !slices.Contains(classes(), o.Class) {
			return errors.New("want S, W or A")
		}
		return nil
	})
	flags.BoolVar(&o.Paper, "paper", false,
		"as in MPI/MBCF's paper: all receives are offered; those of MG and of LU's faces name no source")
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q: the class is set by -class", flags.Arg(0))
		fmt.Fprintln(stderr, err)
		flags.Usage()
		return Options{}, err
	}
	return o, nil
}

// program is each node's part.
func program(
	name string, kernel Kernel, o Options, out io.Writer,
) func(context.Context, *start.Node) error {
	return func(ctx context.Context, n *start.Node) error {
		w, err := mpi.Open(n.Endpoint, messages(o.Paper))
		if err != nil {
			return err
		}
		return errors.Join(runRank(ctx, w.Comm(), name, kernel, o, out), w.Close())
	}
}

func runRank(ctx context.Context, c *mpi.Comm, name string, kernel Kernel, o Options, out io.Writer) error {
	if c.Rank() != 0 {
		out = io.Discard
	}
	fmt.Fprintf(out, "\n NAS Parallel Benchmarks, in Go -- %s Benchmark\n\n", name)
	result, err := kernel(ctx, c, o, out)
	if err != nil {
		return err
	}
	result.print(out, name, o.Class, c.Size())
	if err := c.Barrier(ctx); err != nil { // nobody needs this rank any more
		return err
	}
	if c.Rank() == 0 && result.Wrong != nil {
		return fmt.Errorf("%s, class %s, is not verified: %w", name, o.Class, result.Wrong)
	}
	return nil
}

// Timed is what something takes: time at the slowest rank, where all begin together, and messages
// of all ranks.
type Timed struct {
	Time           time.Duration
	Messages       uint64
	Bytes, Written uint64 // of the messages; of these, by their senders into receives
	Read           uint64 // of these, by their receivers
}

// Measure returns what f takes.
func Measure(ctx context.Context, c *mpi.Comm, f func() error) (t Timed, err error) {
	if err := c.Barrier(ctx); err != nil {
		return t, err
	}
	before, start := c.World().Counters(), time.Now()
	if err := f(); err != nil {
		return t, err
	}
	took, after := []time.Duration{time.Since(start)}, c.World().Counters()
	sent := []uint64{
		after.Sent - before.Sent, after.SentBytes - before.SentBytes, after.WrittenBytes - before.WrittenBytes,
		after.RequestedBytes - before.RequestedBytes,
	}
	err = errors.Join(mpi.Allreduce(ctx, c, took, took, mpi.Max), mpi.Allreduce(ctx, c, sent, sent, mpi.Sum))
	return Timed{Time: took[0], Messages: sent[0], Bytes: sent[1], Written: sent[2], Read: sent[3]}, err
}

// Result of a benchmark.
type Result struct {
	Size       string  // of the problem
	Iterations int     // that were timed
	Timed      Timed   // what they took
	Operations float64 // that they did
	Operation  string  // what these are
	Wrong      error   // why the result is not verified; nil if it is
}

// print prints the report in NPB's form.
func (r Result) print(out io.Writer, name, class string, processes int) {
	verification := "SUCCESSFUL"
	if r.Wrong != nil {
		verification = "UNSUCCESSFUL"
	}
	seconds := r.Timed.Time.Seconds()
	mops := r.Operations / 1e6 / seconds
	share := func(bytes uint64) string {
		return fmt.Sprintf("%.2f", 100*float64(bytes)/float64(max(r.Timed.Bytes, 1)))
	}
	fmt.Fprintf(out, "\n\n %s Benchmark Completed\n", name)
	for _, line := range []struct{ what, value string }{
		{"Class", class},
		{"Size", r.Size},
		{"Iterations", fmt.Sprint(r.Iterations)},
		{"Time in seconds", fmt.Sprintf("%.2f", seconds)},
		{"Total processes", fmt.Sprint(processes)},
		{"Mop/s total", fmt.Sprintf("%.2f", mops)},
		{"Mop/s/process", fmt.Sprintf("%.2f", mops/float64(processes))},
		{"Operation type", r.Operation},
		{"Verification", verification},
		{"Data, MB/s", fmt.Sprintf("%.2f", float64(r.Timed.Bytes)/1e6/seconds)},
		{"Messages/s", fmt.Sprintf("%.0f", float64(r.Timed.Messages)/seconds)},
		{"Written, %", share(r.Timed.Written)},
		{"Read, %", share(r.Timed.Read)},
	} {
		fmt.Fprintf(out, " %-15s = %24s\n", line.what, line.value)
	}
}
