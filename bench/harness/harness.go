//go:build linux

// Package harness is what the benchmarks of this folder share: the main function and its flags,
// rounds in which the variants take turns, tables of medians and ratios, targets, and the programs
// that are compared.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bench is a benchmark. Flags of its own are package flag's.
type Bench struct {
	Name          string
	Link          string // between the programs, as the first line of the output says it
	Rounds, Iters int    // the defaults of -rounds and -iters, and in Run what the user gave
	MinIters      int
	Rows          bool // Run returns a report whose tables have rows without results
	Run           func(context.Context, *Bench) (Report, error)

	Programs Programs // that are compared, from Build on; for Rows, those of a machine that has all
	Dir      string   // of files of this run, from MakeDir on; it goes once Run has returned

	limits   bool          // are to be met
	watches  bool          // how quick the cores are
	usual    int           // the default of Iters
	patience time.Duration // with a variant's turn of so many; 0: turnPatience
}

// Main runs the benchmark and exits.
func (b *Bench) Main() {
	ctx, stop := UntilEnded()
	// A reader that has had enough, as head has, is an error of the write, behind which results are
	// kept.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	err := b.main(ctx)
	stop()
	Exit(b.Name, err)
}

// UntilEnded returns a context that ends with the signals that end a program, and some more: what
// it has made and started is to end with it. It outlives its terminal where it is to, as under
// nohup.
func UntilEnded(more ...os.Signal) (ctx context.Context, stop func()) {
	ends := append([]os.Signal{os.Interrupt, unix.SIGTERM}, more...)
	if !signal.Ignored(unix.SIGHUP) {
		ends = append(ends, unix.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// ErrNotMet: a benchmark did not meet all of its limits.
var ErrNotMet = errors.New("limits were not met")

// misuse is flags or arguments that nothing can be measured by.
type misuse struct{ error }

// Misuse returns the error of flags or arguments that nothing can be measured by: Exit says how the
// program is used.
func Misuse(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// Statuses of programs: as of commands, and of package flag.
const (
	exitFailed  = 1
	exitMisused = 2
)

// Exit ends the program, with status 1 if there is an error, and 2 if that is a misuse.
func Exit(name string, err error) { os.Exit(report(os.Stderr, name, err)) }

// report prints the error, if there is one, and returns the status.
func report(said io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(said, "%s: %v\n", name, err)
	if !errors.As(err, new(misuse)) {
		return exitFailed
	}
	flag.CommandLine.SetOutput(said)
	flag.Usage()
	return exitMisused
}

func (b *Bench) main(ctx context.Context) error {
	b.usual = b.Iters
	flag.CommandLine.Init(b.Name, flag.ExitOnError)
	flag.IntVar(&b.Rounds, "rounds", b.Rounds, "rounds, in each of which all variants run; medians count")
	flag.IntVar(&b.Iters, "iters", b.Iters, "operations of each variant in a round")
	asJSON := flag.Bool("json", false, "print JSON lines")
	flag.BoolVar(&b.limits, "limits", true,
		"exit with 1 if a limit is not met; false for runs that are too short to tell")
	flag.BoolVar(&b.Rows, "rows", false, "print the names of all rows, and measure nothing")
	flag.Parse()
	if err := b.check(flag.Args()); err != nil {
		return err
	}
	b.watches = true
	if b.Rows {
		b.Programs.C = "there"
	}
	r, err := b.Run(ctx, b)
	if b.Dir != "" {
		err = errors.Join(err, os.RemoveAll(b.Dir))
	}
	if err != nil {
		return err
	}
	if b.Rows {
		return r.printRows(os.Stdout)
	}
	return b.finish(&r, *asJSON)
}

// MakeDir makes Dir, if it is not there yet. It comes behind testbed.Reexec, which begins Run anew.
func (b *Bench) MakeDir() (err error) {
	if b.Dir == "" {
		b.Dir, err = os.MkdirTemp("", "rawlane-bench-")
	}
	return err
}

// finish prints the report, keeps it, also where nobody can read it, and judges it, if it is to.
func (b *Bench) finish(r *Report, asJSON bool) error {
	err := b.print(r, asJSON)
	if r.Save != nil {
		err = errors.Join(err, r.Save())
	}
	if err != nil {
		return err
	}
	if failed := r.notMet(); b.limits && len(failed) > 0 {
		return fmt.Errorf("%w: %s (-limits=false exits with 0 all the same)", ErrNotMet, strings.Join(failed, "; "))
	}
	return nil
}

// check refuses numbers that are too small, and arguments behind the flags: "iters=100" is no flag,
// and to measure without it is not what was asked for.
func (b *Bench) check(args []string) error {
	if len(args) > 0 {
		return Misuse("unexpected argument %q (want flags alone)", args[0])
	}
	if b.Rounds < 1 || b.Iters < b.MinIters {
		return Misuse("want -rounds 1 or more, -iters %d or more", b.MinIters)
	}
	return nil
}

// print writes the report at once.
func (b *Bench) print(r *Report, asJSON bool) error {
	var text bytes.Buffer
	var errs []error
	if asJSON {
		lines := json.NewEncoder(&text)
		for _, t := range r.Tables {
			for _, row := range t.Rows {
				errs = append(errs, lines.Encode(t.line(row)))
			}
		}
	} else {
		fmt.Fprintf(&text, "%s; %s\n\n", Machine(), b.Link)
		r.print(&text)
	}
	_, err := os.Stdout.Write(text.Bytes())
	return errors.Join(append(errs, err)...)
}

// LeftOut says what is not compared, and why.
func (b *Bench) LeftOut(why error) { fmt.Fprintf(os.Stderr, "%s: left out: %v\n", b.Name, why) }

// List is numbers as flags take them.
func List(numbers []int) string {
	words := make([]string, len(numbers))
	for k, n := range numbers {
		words[k] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// ParseNodes reads the list of a flag -nodes: how many nodes, at most so many, separated by commas.
// It returns each number once, in ascending order.
func ParseNodes(text string, most int) (nodes []int, err error) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 || n > most {
			return nil, Misuse("-nodes %q: want numbers of 2 to %d", text, most)
		}
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// RowsOf is the report of Bench.Rows: the names of what variants would add.
func RowsOf(all []Variant) Report {
	t := &Table{}
	for _, v := range all {
		names := v.Rows
		if len(names) == 0 {
			names = []string{v.Name}
		}
		for _, name := range names {
			t.Rows = append(t.Rows, &Row{Name: name})
		}
	}
	return Report{Tables: []*Table{t}}
}
