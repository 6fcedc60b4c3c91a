//go:build linux

// Command rate answers: how many messages a second leave one core, beside a C program that makes
// the same system calls? The receiver, on the other core, polls in both cases.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/floor"
	"github.com/rawlane/rawlane/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rate:", err)
		os.Exit(1)
	}
}

// batch is how many frames a system call sends, ours and the C program's.
const batch = 32

// sizes are the payloads, in bytes: little ones, and almost a full frame.
var sizes = []int{64, 1400}

// headerLen is what our header adds to a payload: the C program sends frames of the same length.
const headerLen = 20

// sample is one run's result.
type sample struct {
	rate    float64 // messages sent a second
	arrived float64 // of the messages sent, the share that the receiver got
}

// contestant is a sender.
type contestant struct {
	name    string
	size    int
	run     func(ctx context.Context) (sample, error)
	samples []sample
}

// median returns the sample with the median rate.
func (c *contestant) median() sample {
	slices.SortFunc(c.samples, func(a, b sample) int { return cmp.Compare(a.rate, b.rate) })
	return c.samples[len(c.samples)/2]
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rate", flag.ExitOnError)
	iters := flags.Int("iters", 500_000, "messages per contestant and round")
	rounds := flags.Int("rounds", 5, "rounds; each contestant's median counts")
	asJSON := flags.Bool("json", false, "print JSON lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *iters < 1000 || *rounds < 1 {
		return errors.New("want -iters 1000 or more, -rounds 1 or more")
	}
	r, err := rig.New()
	if err != nil {
		return err
	}
	all, err := contestants(ctx, r, *iters)
	if err == nil {
		err = compete(ctx, all, *rounds)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if *asJSON {
		return reportJSON(out, all)
	}
	report(out, all)
	return nil
}

const (
	cBatch  = "C, sendmmsg of 32"
	cSingle = "C, one send each"
	cRing   = "C, transmit ring"
	ours    = "rawlane, ring"
	memory  = "rawlane, fabric"
)

func contestants(ctx context.Context, r *rig.Rig, iters int) (all []*contestant, err error) {
	c, err := floor.Build(r.Dir())
	if err != nil && !errors.Is(err, floor.ErrNoCompiler) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v: the C rows are left out, and with them the ratios\n", err)
	}
	rawlane, err := rig.Rawlane(ctx, r.Dir())
	if err != nil {
		return nil, err
	}
	for _, size := range sizes {
		for _, k := range []struct {
			name, mode string
			batch      int
		}{{cSingle, "ring-send", 1}, {cBatch, "ring-send", batch}, {cRing, "ring-txring", batch}} {
			if c == "" {
				break
			}
			all = append(all, &contestant{name: k.name, size: size, run: func(ctx context.Context) (sample, error) {
				return measureC(ctx, r, c, k.mode, size+headerLen, iters, k.batch)
			}})
		}
		for _, k := range []struct{ name, link string }{{memory, "fabric"}, {ours, "ring"}} {
			all = append(all, &contestant{name: k.name, size: size, run: func(ctx context.Context) (sample, error) {
				return measure(ctx, rawlane, k.link, size, iters)
			}})
		}
	}
	return all, nil
}

// measureC runs the C program's sender against its sink, which prints how many frames came.
func measureC(ctx context.Context, r *rig.Rig, program, mode string, size, iters, batch int) (s sample, err error) {
	sank, sent, err := r.Pair(ctx, []string{program, "ring-sink", rig.Interface, strconv.Itoa(r.Core(1))},
		[]string{program, mode, rig.Interface, strconv.Itoa(r.Core(0)), strconv.Itoa(size), strconv.Itoa(iters), strconv.Itoa(batch)})
	if err != nil {
		return s, err
	}
	var ns, came float64
	if _, err := fmt.Sscan(sent, &ns); err != nil {
		return s, fmt.Errorf("unexpected output %q of the sender: %w", sent, err)
	}
	if _, err := fmt.Sscan(sank, &came); err != nil {
		return s, fmt.Errorf("unexpected output %q of the sink: %w", sank, err)
	}
	return sample{rate: float64(iters) / ns * 1e9, arrived: came / float64(iters)}, nil
}

// measure runs the command that users run, and that makes its own namespaces like the rig's.
func measure(ctx context.Context, rawlane, link string, size, iters int) (s sample, err error) {
	cmd := exec.CommandContext(ctx, rawlane, "bench", "rate", "--link", link, "--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters), "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	var line struct {
		Sent float64 `json:"tx_msgs_per_s"`
		Lost float64 `json:"lost"`
	}
	if err := json.Unmarshal(out, &line); err != nil {
		return s, err
	}
	return sample{rate: line.Sent, arrived: 1 - line.Lost/float64(iters)}, nil
}

// compete runs the rounds. Contestants take turns, so that a slow moment of the machine meets all.
func compete(ctx context.Context, all []*contestant, rounds int) error {
	for range rounds {
		for _, c := range all {
			s, err := c.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.samples = append(c.samples, s)
		}
	}
	return nil
}

// rateOf returns the median rate of a contestant, or 0 if it was left out.
func rateOf(all []*contestant, name string, size int) float64 {
	for _, c := range all {
		if c.name == name && c.size == size {
			return c.median().rate
		}
	}
	return 0
}

// ratio compares a contestant with the C program's batches; 0 if those were left out.
func ratio(all []*contestant, c *contestant) float64 {
	if floor := rateOf(all, cBatch, c.size); floor > 0 {
		return c.median().rate / floor
	}
	return 0
}

func reportJSON(out io.Writer, all []*contestant) error {
	lines := json.NewEncoder(out)
	for _, c := range all {
		m := c.median()
		err := lines.Encode(map[string]any{"name": c.name, "size_bytes": c.size, "tx_msgs_per_s": m.rate, "arrived": m.arrived, "ratio_to_c_batch": ratio(all, c)})
		if err != nil {
			return err
		}
	}
	return nil
}

func report(out io.Writer, all []*contestant) {
	fmt.Fprintf(out, "Messages sent a second by one core; median of %d rounds\n%-20s %6s %12s %8s %10s\n", len(all[0].samples), "", "bytes", "msgs/s", "arrived", "/ C batch")
	for _, c := range all {
		m := c.median()
		fmt.Fprintf(out, "%-20s %6d %12.0f %7.1f%% %10.2f\n", c.name, c.size, m.rate, 100*m.arrived, ratio(all, c))
	}
	fmt.Fprintln(out)
	for _, size := range sizes {
		if floor := rateOf(all, cBatch, size); floor > 0 {
			verdict(out, fmt.Sprintf("ring at least 0.9 x C, %d bytes", size), rateOf(all, ours, size)/floor, 0.9)
		}
	}
	verdict(out, "fabric at least 2 million/s, 64 bytes", rateOf(all, memory, 64)/1e6, 2)
}

func verdict(out io.Writer, what string, got, want float64) {
	word := "met"
	if got < want {
		word = "NOT met"
	}
	fmt.Fprintf(out, "%-40s %-8s (%.2f, want %.2f)\n", what, word, got, want)
}
