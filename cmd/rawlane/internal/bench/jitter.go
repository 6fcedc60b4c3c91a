package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/cpuset"
	"github.com/rawlane/rawlane/internal/monotime"
)

// jitterBench measures what takes cores from a program that spins: interrupts, the system's other
// threads, the runtime's own, and the host of a virtual machine. It has no nodes.
type jitterBench struct {
	seconds int
	least   time.Duration
	cores   []int
	formats cli.Formats
}

const (
	maxJitterSeconds = 3600
	maxJitterCores   = 1024
	// leastPause is the shortest pause that --least may ask for: a look at the clock takes up to
	// 0.1 us.
	leastPause = 500 * time.Nanosecond
	// looks is how many looks at the clock pass between those at the context: about 1 ms.
	looks = 1 << 14
)

func newJitterCommand() *cobra.Command {
	b := &jitterBench{seconds: 2, least: time.Microsecond}
	cmd := &cobra.Command{
		Use:   "jitter [flags]",
		Short: "What takes cores from a loop that only looks at the clock",
		Long: `A loop on each core looks at the clock, all at the same time. Where two looks are far apart, something
else has had the core meanwhile: an interrupt, another thread, Go's runtime, or, on a virtual machine,
the host. Programs that spin for messages stand still for as long. So this is the part of a message's
99th percentile that no program can mend; what does is the machine's: isolated cores (isolcpus,
nohz_full), interrupts elsewhere, a host that gives the cores to nobody else.

hit is how many of round trips of 10 us, between two such cores, have a pause in them.

  rawlane bench jitter
  rawlane bench jitter --cores 2,3 --seconds 10 --least 5us`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&b.seconds, "seconds", b.seconds, "how long to look")
	f.DurationVar(&b.least, "least", b.least, "shortest pause that counts")
	cli.ListFlag(f, &b.cores, "cores", "N,...",
		"processor cores (default: those of the first two nodes of a benchmark)", upTo(maxJitterCores-1))
	b.formats.Register(f)
	return cmd
}

// jitterResult is one line: what a core was kept from.
type jitterResult struct {
	Schema  int         `json:"schema"`
	Bench   string      `json:"bench"`
	Core    int         `json:"core"` // or notPinned
	Seconds float64     `json:"seconds"`
	LeastUS float64     `json:"least_us"`
	PerS    float64     `json:"pauses_per_s"`
	P50US   float64     `json:"p50_us"`
	P99US   float64     `json:"p99_us"`
	MaxUS   float64     `json:"max_us"`
	Lost    float64     `json:"lost_percent"` // of the time
	Hit     float64     `json:"hit_percent"`  // of round trips of jitterTrip between two such cores
	Host    launch.Host `json:"host"`
}

// jitterTrip is the round trip that Hit is of.
const jitterTrip = 10 * time.Microsecond

func (b *jitterBench) run(cmd *cobra.Command) error {
	switch {
	case b.seconds < 1 || b.seconds > maxJitterSeconds:
		return cli.Misuse("--seconds %d: want 1 to %d", b.seconds, maxJitterSeconds)
	case b.least < leastPause || b.least > time.Second:
		return cli.Misuse("--least %v: want %v to %v", b.least, leastPause, time.Second)
	}
	if err := b.formats.Validate(); err != nil {
		return err
	}
	if err := b.choose(cpuset.Allowed()); err != nil {
		return err
	}
	all := make([]pauses, len(b.cores))
	errs := make([]error, len(b.cores))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), len(b.cores))))
	var running sync.WaitGroup
	for i, core := range b.cores {
		running.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			if core != notPinned {
				if errs[i] = launch.MoveThread(core); errs[i] != nil {
					return
				}
			}
			all[i].init(b.least)
			errs[i] = all[i].watch(cmd.Context(), time.Duration(b.seconds)*time.Second, clock.Now)
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	host := launch.ThisHost("", 0)
	lines := cli.Lines{Out: cmd.OutOrStdout(), JSON: b.formats.JSON, CSV: b.formats.CSV}
	for i := range all {
		r := all[i].result()
		r.Core, r.Host = b.cores[i], host
		if err := lines.Write(r, r.head(), r.line()); err != nil {
			return err
		}
	}
	return nil
}

// choose completes and checks the cores, each of which has one loop, of those that this process may
// run on: none where the system does not tell.
func (b *jitterBench) choose(allowed []int) error {
	var once []int
	for _, core := range b.cores {
		if len(allowed) > 0 && !slices.Contains(allowed, core) {
			return cli.Misuse("--cores %d: this process may run on %d alone",
				core, slices.Sorted(slices.Values(allowed)))
		}
		if !slices.Contains(once, core) {
			once = append(once, core)
		}
	}
	switch {
	case len(b.cores) > 0:
		b.cores = once
	case len(allowed) == 0:
		b.cores = []int{notPinned, notPinned}
	default:
		b.cores = allowed[:min(2, len(allowed))]
	}
	return nil
}

// pauses are those of one core.
type pauses struct {
	least time.Duration // that count
	taken *hdrhistogram.Histogram
	lost  time.Duration // their sum
	of    time.Duration // how long the clock was watched
}

func (p *pauses) init(least time.Duration) {
	*p = pauses{least: least, taken: hdrhistogram.New(1, int64(time.Hour), 3)}
}

// watch looks at the clock for so long, or until ctx ends, and returns why it did.
func (p *pauses) watch(ctx context.Context, d time.Duration, now func() monotime.Time) error {
	start := now()
	last, end := start, start.Add(d)
	for last.Before(end) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		last = now() // what the look at the context took was its own
		for range looks {
			t := now()
			if pause := t.Sub(last); pause >= p.least {
				_ = p.taken.RecordValue(min(int64(pause), int64(time.Hour))) // which it has room for
				p.lost += pause
			}
			if last = t; !t.Before(end) {
				break
			}
		}
	}
	p.of = last.Sub(start)
	return nil
}

func (p *pauses) result() jitterResult {
	us := func(ns int64) float64 { return cli.Micros(time.Duration(ns)) }
	r := jitterResult{
		Schema: resultSchema, Bench: "jitter", Seconds: p.of.Seconds(), LeastUS: cli.Micros(p.least),
		PerS:  float64(p.taken.TotalCount()) / p.of.Seconds(),
		P50US: us(p.taken.ValueAtQuantile(50)), P99US: us(p.taken.ValueAtQuantile(99)), MaxUS: us(p.taken.Max()),
		Lost: 100 * p.lost.Seconds() / p.of.Seconds(),
	}
	if own := p.of - p.lost; own > 0 { // round trips begin in this
		rate := float64(p.taken.TotalCount()) / own.Seconds()
		r.Hit = 100 * (1 - math.Exp(-2*rate*jitterTrip.Seconds()))
	}
	return r
}

func (r *jitterResult) head() string {
	return fmt.Sprintf("jitter: %v, pauses of %g us and more\n%4s %10s %9s %9s %9s %7s %7s\n", r.Host, r.LeastUS,
		"core", "pauses/s", "p50 us", "p99 us", "max us", "lost %", "hit %")
}

func (r *jitterResult) line() string {
	core := strconv.Itoa(r.Core)
	if r.Core == notPinned {
		core = "any"
	}
	return fmt.Sprintf("%4s %10.1f %9.1f %9.1f %9.1f %7.2f %7.2f\n",
		core, r.PerS, r.P50US, r.P99US, r.MaxUS, r.Lost, r.Hit)
}
