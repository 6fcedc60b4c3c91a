//go:build linux

// Command rate answers: how many messages a second leave one core, beside a C program that makes the same system
// calls? The receiver, on the other core, polls in both cases.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rate:", err)
		os.Exit(1)
	}
}

// batch is how many frames a system call sends, ours and the C program's.
const batch = 32

// headerLen is what our header adds to a payload: the C program sends frames of the same length.
const headerLen = 20

// contestant is a sender. A run returns messages sent a second.
type contestant struct {
	name  string
	size  int
	run   func(ctx context.Context) (float64, error)
	rates []float64
}

func (c *contestant) median() float64 {
	slices.Sort(c.rates)
	return c.rates[len(c.rates)/2]
}

func run(ctx context.Context, args []string) error {
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
	for range *rounds { // contestants take turns, so that a slow moment of the machine meets all
		for _, c := range all {
			if err != nil {
				break
			}
			var rate float64
			if rate, err = c.run(ctx); err != nil {
				err = fmt.Errorf("%s: %w", c.name, err)
			}
			c.rates = append(c.rates, rate)
		}
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return report(all, *asJSON)
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
		fmt.Fprintf(os.Stderr, "the C program is left out, and with it the ratios: %v\n", err)
	}
	rawlane, err := r.Rawlane(ctx)
	if err != nil {
		return nil, err
	}
	for _, size := range []int{64, 1400} {
		if c != "" {
			for _, k := range []struct {
				name, mode string
				batch      int
			}{{cSingle, "ring-send", 1}, {cBatch, "ring-send", batch}, {cRing, "ring-txring", batch}} {
				all = append(all, &contestant{name: k.name, size: size, run: func(ctx context.Context) (float64, error) {
					out, err := r.Pair(ctx, []string{c, "ring-sink", rig.Interface, strconv.Itoa(r.Core(1))},
						[]string{c, k.mode, rig.Interface, strconv.Itoa(r.Core(0)), strconv.Itoa(size + headerLen), strconv.Itoa(iters), strconv.Itoa(k.batch)})
					if err != nil {
						return 0, err
					}
					ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
					return float64(iters) / ns * 1e9, err
				}})
			}
		}
		for name, link := range map[string]string{ours: "ring", memory: "fabric"} {
			all = append(all, &contestant{name: name, size: size, run: func(ctx context.Context) (float64, error) {
				return measure(ctx, rawlane, link, size, iters)
			}})
		}
	}
	slices.SortFunc(all, func(a, b *contestant) int {
		return 2*(a.size-b.size) + strings.Compare(a.name, b.name)
	})
	return all, nil
}

// measure runs the command that users run, and that makes its own namespaces like the rig's.
func measure(ctx context.Context, rawlane, link string, size, iters int) (float64, error) {
	cmd := exec.CommandContext(ctx, rawlane, "bench", "rate", "--link", link, "--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters), "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	var line struct {
		Sent float64 `json:"tx_msgs_per_s"`
	}
	return line.Sent, errors.Join(json.Unmarshal(out, &line))
}

func report(all []*contestant, asJSON bool) error {
	rate := make(map[string]float64)
	key := func(name string, size int) string { return fmt.Sprint(name, size) }
	for _, c := range all {
		rate[key(c.name, c.size)] = c.median()
	}
	if !asJSON {
		fmt.Printf("Messages sent a second by one core; median of %d rounds\n%-20s %6s %12s %10s\n", len(all[0].rates), "", "bytes", "msgs/s", "/ C batch")
	}
	for _, c := range all {
		ratio := 0.
		if floor := rate[key(cBatch, c.size)]; floor > 0 {
			ratio = c.median() / floor
		}
		if asJSON {
			err := json.NewEncoder(os.Stdout).Encode(map[string]any{"name": c.name, "size_bytes": c.size, "tx_msgs_per_s": c.median(), "ratio_to_c_batch": ratio})
			if err != nil {
				return err
			}
			continue
		}
		fmt.Printf("%-20s %6d %12.0f %10.2f\n", c.name, c.size, c.median(), ratio)
	}
	if asJSON {
		return nil
	}
	fmt.Println()
	for _, size := range []int{64, 1400} {
		if floor := rate[key(cBatch, size)]; floor > 0 {
			verdict(fmt.Sprintf("ring at least 0.9 x C, %d bytes", size), rate[key(ours, size)]/floor, 0.9)
		}
	}
	verdict("fabric at least 2 million/s, 64 bytes", rate[key(memory, 64)]/1e6, 2)
	return nil
}

func verdict(what string, got, want float64) {
	word := "met"
	if got < want {
		word = "NOT met"
	}
	fmt.Printf("%-40s %-8s (%.2f, want %.2f)\n", what, word, got, want)
}
