//go:build linux

// Command incast answers: do many senders share one receiver's line, and do they use it up?
//
//	sender 1 ---\
//	sender 2 ----[bridge |queue]--- line --- receiver
//	sender 32 --/
//
// Each node is a process in a namespace of its own, on a bridge. The bridge's port to the receiver
// is a token bucket behind a queue of four full frames for each sender: the least congestion
// windows of all fit, and no more. All senders write as fast as they may; the receiver counts, for
// each of them, what is in place every 200 ms.
//
// The line is slow, so that it is what limits, and not two cores that 33 processes share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

var (
	senders = flag.Int("senders", 32, "senders")
	rate    = flag.Int("rate", 100, "the receiver's line, in Mbit/s")
	queue   = flag.Int("queue", 0, "full frames that wait for the line at most; 0: four for each sender")
)

const (
	// interval is over how long shares are counted.
	interval = 200 * time.Millisecond
	// warmUp is for how long all have sent when that begins: five intervals.
	warmUp = time.Second
	// fullFrame is the longest frame of a NIC with the usual MTU, as the token bucket counts it.
	fullFrame = 1514
	// frameLen is the longest frame that can be part of a train; the train's headers are not data.
	frameLen = 1514 - 28
	// patience is how long a round may take beyond its intervals: the start of all processes on a
	// busy machine.
	patience = time.Minute
)

// The limits, and the rows.
const (
	leastUse      = 97
	leastFairness = 0.9
	useRow        = "the line that new data uses, %"
	fairnessRow   = "Jain's index of fairness"
	sentRow       = "frames sent per frame in place"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], asNode) {
		harness.Exit("incast", runNode(strings.TrimPrefix(os.Args[1], asNode)))
	}
	b := harness.Bench{Name: "incast", Link: "a namespace for each node, on a bridge",
		Rounds: 3, Iters: 10, MinIters: 1, Run: run}
	b.Main()
}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if *queue == 0 {
		*queue = 4 * *senders
	}
	if *senders < 1 || *senders >= testbed.MaxNodes || *rate < 1 || *rate > 10_000 || *queue < 1 || *queue > 10_000 {
		return r, harness.Misuse("want -senders 1 to %d, -rate 1 to 10000, -queue 0 to 10000", testbed.MaxNodes-1)
	}
	t := newTable()
	r = harness.Report{Tables: []*harness.Table{t}}
	if b.Rows {
		return harness.RowsOf([]harness.Variant{{Rows: []string{useRow, fairnessRow, sentRow}}}), nil
	}
	bed, err := testbed.Open(testbed.Config{Nodes: *senders + 1, Bridge: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	line := testbed.Line{BitsPerSecond: uint64(*rate) * 1e6, Queue: *queue * fullFrame}
	if err := bed.SetLine(0, 0, line); err != nil {
		return r, err
	}
	err = b.RunRounds(ctx, []harness.Variant{{Name: "incast", Run: func(ctx context.Context) error {
		return round(ctx, b, bed, t)
	}}})
	r.Targets = []harness.Target{
		{What: fmt.Sprintf("new data at least %d %% of the line", leastUse), Got: t.Find(useRow).Median(),
			Limit: leastUse, AtLeast: true},
		{What: "Jain's index at least 0.9", Got: t.Find(fairnessRow).Median(), Limit: leastFairness, AtLeast: true},
	}
	return r, err
}

func newTable() *harness.Table {
	title := fmt.Sprintf("%d senders, a line of %d Mbit/s, a queue of %d frames; intervals of %v",
		*senders, *rate, *queue, interval)
	return &harness.Table{
		Title: fmt.Sprintf("%s\n%-32s %9s %21s", title, "", "median", "range"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-32s %9.3f %9.3f - %9.3f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "senders": *senders, "rate_mbit_per_s": *rate, "queue_frames": *queue,
				"results": r.Rounds(), "median": r.Median(), "lowest": r.Min(), "highest": r.Max()}
		},
	}
}

// round starts all nodes, and adds what the receiver counts.
func round(ctx context.Context, b *harness.Bench, bed *testbed.Bed, t *harness.Table) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.Iters)*interval+patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	start := func(node int, words ...string) (*harness.Program, error) {
		args := append([]string{self, asNode + strconv.Itoa(node), strconv.Itoa(*senders)}, words...)
		return harness.Start(ctx, bed, node, nil, args...)
	}
	receiver, err := start(0, strconv.Itoa(b.Iters))
	if err != nil {
		return err
	}
	keys, err := receiver.Line()
	if err != nil {
		return err
	}
	all := make([]*harness.Program, 0, *senders)
	for node := 1; node <= *senders; node++ {
		p, err := start(node, strings.Fields(keys)[node-1])
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if err := p.AwaitReady(); err != nil {
			return err
		}
	}
	before, err := bed.LineCounts(0, 0)
	if err != nil {
		return err
	}
	for _, p := range all {
		p.Begin()
	}
	numbers, err := receiver.Numbers(2*b.Iters + 1)
	after, lineErr := bed.LineCounts(0, 0)
	err = errors.Join(err, lineErr)
	for _, p := range all {
		p.Stop() // all of them, before the last ones miss the receiver
	}
	for _, p := range all {
		_, stopErr := p.Numbers(0)
		err = errors.Join(err, stopErr)
	}
	if err != nil {
		return err
	}
	for i := range b.Iters {
		t.Add(useRow, 100*numbers[2*i]*frameLen*8/(float64(*rate)*1e6))
		t.Add(fairnessRow, numbers[2*i+1])
	}
	came := after.Sent + after.Dropped - before.Sent - before.Dropped
	t.Add(sentRow, float64(came)/numbers[2*b.Iters])
	return nil
}
