//go:build linux

// Command gate answers: is one commit quicker than another? It runs the Go benchmarks of the hot
// paths of both in turns, in work trees of its own, and prints benchstat's table with the geometric
// mean: where the same machine ran both, a difference with a small p is one of the commits.
//
//	go run ./bench/gate main             HEAD beside main
//	go run ./bench/gate v1.0 v1.1        any two
//	go run ./bench/gate -fail-over 5 HEAD~1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/harness"
)

// options are the flags.
type options struct {
	rounds    int
	benchtime time.Duration
	only      string
	chosen    []benchmarks // those of the packages that match only
	failOver  float64      // percent; negative: never
}

// exitMisused is the status of wrong flags.
const exitMisused = 2

func main() {
	o, base, head, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gate: %v\n", err)
		os.Exit(exitMisused)
	}
	ctx, stop := untilEnded()
	err = run(ctx, os.Stdout, o, base, head)
	stop()
	harness.Exit("gate", err)
}

// untilEnded returns a context that a signal ends, so that the work trees are removed: also that of
// a write to a reader that has had enough, as head has.
func untilEnded() (ctx context.Context, stop func()) {
	return harness.UntilEnded(unix.SIGPIPE)
}

// parse reads the flags and the two commits.
func parse(args []string, said io.Writer) (o options, base, head string, err error) {
	f := flag.NewFlagSet("gate", flag.ContinueOnError)
	f.SetOutput(said)
	f.Usage = func() {
		fmt.Fprintln(said, "Usage: go run ./bench/gate [flags] BASE [HEAD]")
		f.PrintDefaults()
	}
	f.IntVar(&o.rounds, "rounds", 6, "runs of each benchmark of each commit; fewer than 4 tell nothing")
	f.DurationVar(&o.benchtime, "benchtime", 30*time.Millisecond, "how long a run of a benchmark takes, about")
	f.StringVar(&o.only, "only", "", "the packages that match this regular expression")
	f.Float64Var(&o.failOver, "fail-over", -1,
		"exit with 1 if the geometric mean of times rises by more percent; negative: never")
	if err := f.Parse(args); err != nil {
		return o, "", "", err
	}
	switch {
	case f.NArg() < 1 || f.NArg() > 2:
		f.Usage()
		return o, "", "", fmt.Errorf("%d commits: want one, or two", f.NArg())
	case o.rounds < 1 || o.rounds > 100:
		f.Usage()
		return o, "", "", fmt.Errorf("-rounds %d: want 1 to 100", o.rounds)
	case o.benchtime <= 0 || o.benchtime > time.Minute:
		f.Usage()
		return o, "", "", fmt.Errorf("-benchtime %v: want more than 0, and a minute at most", o.benchtime)
	case math.IsNaN(o.failOver):
		f.Usage()
		return o, "", "", fmt.Errorf("-fail-over %v: want a number of percent", o.failOver)
	}
	if o.chosen, err = choose(suite, o.only); err != nil {
		f.Usage()
		return o, "", "", err
	}
	base, head = f.Arg(0), f.Arg(1)
	if head == "" {
		head = "HEAD"
	}
	return o, base, head, nil
}

// run compares two commits of the repository that this is run in.
func run(ctx context.Context, out io.Writer, o options, base, head string) (err error) {
	repo, err := os.Getwd()
	if err != nil {
		return err
	}
	g, err := open(ctx, repo, base, head)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.build(ctx, o.chosen); err != nil {
		return err
	}
	if err := g.measure(ctx, o); err != nil {
		return err
	}
	if !g.common() {
		return errors.New("the commits have no benchmark in common")
	}
	title := fmt.Sprintf("%s\nbase: %s\nhead: %s\n\n", harness.Machine(), g.trees[0].name, g.trees[1].name)
	if _, err := io.WriteString(out, title); err != nil {
		return err
	}
	if err := g.benchstat(ctx, out); err != nil {
		return err
	}
	if o.failOver < 0 {
		return nil
	}
	change, err := g.geomean(ctx)
	if err != nil {
		return err
	}
	return judge(change, o.failOver)
}

// judge says whether a change of times in percent passes.
func judge(change, limit float64) error {
	if change > limit {
		return fmt.Errorf("the geometric mean of times rises by %.1f %%, more than %.1f %%", change, limit)
	}
	return nil
}
