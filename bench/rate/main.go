//go:build linux

// Command rate answers: how many messages a second leave one core, beside a C program that makes
// the same system calls? The receiver, on the other core, polls in both cases.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	b := harness.Bench{Name: "rate", Rounds: 5, Iters: 500_000, MinIters: 1000, Run: run}
	b.Main()
}

// batch is how many frames a system call sends, in rawlane and in C.
const batch = 32

// sizes are the payloads, in bytes: small ones, and almost a full frame.
var sizes = []int{64, 1400}

// headerLen is the length of rawlane's header: the C program sends frames of the same length.
const headerLen = 20

// sample is the result of one run.
type sample struct {
	rate    float64 // messages sent a second
	arrived float64 // share of them that the receiver got
}

// sender is a variant with one size.
type sender struct {
	harness.Variant[sample]
	size int
}

func (s *sender) median() sample { return s.Median(func(x sample) float64 { return x.rate }) }

func run(ctx context.Context, o harness.Options) (harness.Report, error) {
	p, err := netpair.New()
	if err != nil {
		return nil, err
	}
	all, err := senders(ctx, p, o.Iters)
	if err == nil {
		var variants []*harness.Variant[sample]
		for _, s := range all {
			variants = append(variants, &s.Variant)
		}
		err = harness.Rounds(ctx, variants, o.Rounds)
	}
	return report(all), errors.Join(err, p.Close())
}

const (
	cBatch  = "C, sendmmsg of 32"
	cSingle = "C, one send each"
	cRing   = "C, transmit ring"
	ours    = "rawlane, ring"
	memory  = "rawlane, fabric"
)

func senders(ctx context.Context, p *netpair.Pair, iters int) (all []*sender, err error) {
	c, err := baseline.BuildIfPossible(p.Dir())
	if err != nil {
		return nil, err
	}
	rawlane, err := harness.BuildRawlane(ctx, p.Dir())
	if err != nil {
		return nil, err
	}
	for _, size := range sizes {
		add := func(name string, run func(context.Context) (sample, error)) {
			all = append(all, &sender{harness.Variant[sample]{Name: name, Run: run}, size})
		}
		for _, k := range []struct {
			name, mode string
			batch      int
		}{{cSingle, "ring-send", 1}, {cBatch, "ring-send", batch}, {cRing, "ring-txring", batch}} {
			if c == "" {
				break
			}
			add(k.name, func(ctx context.Context) (sample, error) {
				return measureC(ctx, p, c, k.mode, size+headerLen, iters, k.batch)
			})
		}
		for _, k := range []struct{ name, link string }{{memory, "fabric"}, {ours, "ring"}} {
			add(k.name, func(ctx context.Context) (sample, error) {
				return measure(ctx, rawlane, k.link, size, iters)
			})
		}
	}
	return all, nil
}

// measureC runs the C program's sender against its sink, which prints how many frames came.
func measureC(
	ctx context.Context, p *netpair.Pair, program, mode string, size, iters, batch int,
) (s sample, err error) {
	sank, sent, err := p.Run(ctx, []string{program, "ring-sink", netpair.Interface, strconv.Itoa(p.Core(1))},
		[]string{program, mode, netpair.Interface, strconv.Itoa(p.Core(0)),
			strconv.Itoa(size), strconv.Itoa(iters), strconv.Itoa(batch)})
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

// measure runs "rawlane bench rate".
func measure(ctx context.Context, r harness.Rawlane, link string, size, iters int) (s sample, err error) {
	type line struct {
		Sent float64 `json:"tx_msgs_per_s"`
		Lost float64 `json:"lost"`
	}
	lines, err := harness.Lines[line](ctx, r, "rate", "--link", link,
		"--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters))
	if err != nil {
		return s, err
	}
	return sample{rate: lines[0].Sent, arrived: 1 - lines[0].Lost/float64(iters)}, nil
}

type report []*sender

// rate returns the median rate of a sender; 0 if it was left out.
func (r report) rate(name string, size int) float64 {
	for _, s := range r {
		if s.Name == name && s.size == size {
			return s.median().rate
		}
	}
	return 0
}

// toC compares a sender with the C program's batches; 0 if those were left out.
func (r report) toC(s *sender) float64 {
	if c := r.rate(cBatch, s.size); c > 0 {
		return s.median().rate / c
	}
	return 0
}

// JSON implements harness.Report.
func (r report) JSON() (lines []any) {
	for _, s := range r {
		m := s.median()
		lines = append(lines, map[string]any{"name": s.Name, "size_bytes": s.size, "tx_msgs_per_s": m.rate,
			"arrived": m.arrived, "ratio_to_c_batch": r.toC(s)})
	}
	return lines
}

// Text implements harness.Report.
func (r report) Text(out io.Writer) {
	fmt.Fprintf(out, "Messages sent a second by one core; median of %d rounds\n%-20s %6s %12s %8s %10s\n",
		len(r[0].Samples), "", "bytes", "msgs/s", "arrived", "/ C batch")
	for _, s := range r {
		m := s.median()
		fmt.Fprintf(out, "%-20s %6d %12.0f %7.1f%% %10.2f\n", s.Name, s.size, m.rate, 100*m.arrived, r.toC(s))
	}
	fmt.Fprintln(out)
	var targets []harness.Target
	for _, size := range sizes {
		if c := r.rate(cBatch, size); c > 0 {
			targets = append(targets, harness.Target{What: fmt.Sprintf("ring at least 0.9 x C, %d bytes", size),
				Got: r.rate(ours, size) / c, Limit: 0.9, AtLeast: true})
		}
	}
	targets = append(targets, harness.Target{What: "fabric at least 2 million/s, 64 bytes",
		Got: r.rate(memory, 64) / 1e6, Limit: 2, AtLeast: true})
	harness.PrintTargets(out, targets...)
}
