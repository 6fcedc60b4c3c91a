//go:build linux

// Command rate answers: how many messages a second leave one core, beside a C program that makes
// the same system calls? The receiver, on the other core, polls in both cases.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	b := harness.Bench{Name: "rate", Link: "a veth pair between two namespaces, without trains",
		Rounds: 5, Iters: 500_000, MinIters: 1000, Run: run}
	b.Main()
}

// batch is how many frames a system call sends, in rawlane and in C.
const batch = 32

// sizes are the payloads, in bytes: small ones, and almost a full frame.
var sizes = []int{64, 1400}

// headerLen is the length of rawlane's header: the C program sends frames of the same length.
const headerLen = 20

const (
	cBatch  = "C, sendmmsg of 32"
	cSingle = "C, one send each"
	cRing   = "C, transmit ring"
	ours    = "rawlane, ring"
	memory  = "rawlane, fabric"
)

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if b.Rows {
		return harness.RowsOf(senders(nil, b, nil, 0)), nil
	}
	p, err := netpair.New()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	var all []harness.Variant
	for _, size := range sizes {
		t := newTable(size)
		r.Tables = append(r.Tables, t)
		all = append(all, senders(p, b, t, size)...)
	}
	r.Tables[0].Title = fmt.Sprintf("Messages sent a second by one core; median of %d rounds\n%-20s %6s %12s %8s",
		b.Rounds, "", "bytes", "msgs/s", "arrived")
	if err := b.RunRounds(ctx, all); err != nil {
		return r, err
	}
	for i, t := range r.Tables {
		r.Targets = append(r.Targets, harness.Target{What: fmt.Sprintf("ring at least 0.9 x C, %d bytes", sizes[i]),
			Got: t.Find(ours).Over(t.Find(cBatch)), Limit: 0.9, AtLeast: true})
	}
	r.Targets = append(r.Targets, harness.Target{What: "fabric at least 2 million/s, 64 bytes",
		Got: r.Tables[0].Find(memory).Median() / 1e6, Limit: 2, AtLeast: true})
	return r, nil
}

// newTable makes the table of a size: messages sent a second, and the share of them that arrived.
func newTable(size int) *harness.Table {
	t := &harness.Table{
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-20s %6d %12.0f %7.1f%%", r.Name, size, r.Median(), 100*r.Second())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "size_bytes": size,
				"tx_msgs_per_s": r.Median(), "arrived": r.Second()}
		},
		Width: 10,
	}
	t.AddRatio("/ C batch", "ratio_to_c_batch", cBatch)
	return t
}

// senders send messages of a size. The C program's sink prints how many frames came.
func senders(p *netpair.Pair, b *harness.Bench, t *harness.Table, size int) (all []harness.Variant) {
	iters := b.Iters
	add := func(name string, run func(context.Context) (rate, arrived float64, err error)) {
		all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
			rate, arrived, err := run(ctx)
			if err == nil {
				t.Add(name, rate, arrived/float64(iters))
			}
			return err
		}})
	}
	for _, k := range []struct {
		name, mode string
		batch      int
	}{{cSingle, "ring-send", 1}, {cBatch, "ring-send", batch}, {cRing, "ring-txring", batch}} {
		if b.Programs.C == "" {
			break
		}
		add(k.name, func(ctx context.Context) (rate, arrived float64, err error) {
			came, ns, err := p.RunC(ctx, b.Programs.C, "ring-sink", k.mode, netpair.Interface,
				size+headerLen, iters, k.batch)
			if err != nil {
				return 0, 0, err
			}
			return float64(iters) / ns[0] * 1e9, came[0], nil
		})
	}
	for _, k := range []struct{ name, link string }{{memory, "fabric"}, {ours, "ring"}} {
		add(k.name, func(ctx context.Context) (rate, arrived float64, err error) {
			type line struct {
				Sent float64 `json:"tx_msgs_per_s"`
				Lost float64 `json:"lost"`
			}
			args := []string{"rate", "--link", k.link, "--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters)}
			if k.name == ours {
				args = append(args, "--trains=false")
			}
			lines, err := harness.Lines[line](ctx, &b.Programs, args...)
			if err != nil {
				return 0, 0, err
			}
			return lines[0].Sent, float64(iters) - lines[0].Lost, nil
		})
	}
	return all
}
