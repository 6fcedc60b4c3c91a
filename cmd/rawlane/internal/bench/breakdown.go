package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
)

const (
	// breakdownTurns is the number of turns in which round trips are measured without stamps and
	// with them, so that a change of the machine's speed changes both: fewer if a turn would have
	// less than breakdownTurn.
	breakdownTurns = 10
	breakdownTurn  = 100
	// stampTime is how long stamps are waited for: the kernel begins some time after it is told to.
	stampTime = 2 * time.Second
	// breakdownIters bounds the round trips, of which each is kept until its turn ends.
	breakdownIters = 1_000_000
	// breakdownSize is the least message that has room for its number.
	breakdownSize = 4
)

func (b *messageBench) breakdownFlags(f *pflag.FlagSet) {
	f.BoolVar(&b.breakdown, "breakdown", false,
		"split round trips with node 1 by the stamps of the kernel and the NIC (packet, ring, udp)")
	f.StringVar(&b.plot, "plot", "", "draw the breakdown into this SVG file")
}

// prepareBreakdown checks the flags, and has this process's link note what passes.
func (b *messageBench) prepareBreakdown() error {
	if !b.breakdown {
		if b.plot != "" {
			return cli.Misuse("--plot: draws a breakdown; give --breakdown, too")
		}
		return nil
	}
	switch {
	case b.cluster.Kind == "fabric" || b.cluster.ThroughMemory():
		return cli.Misuse("--breakdown: frames in memory pass no driver; give --link packet, ring or udp, " +
			"or --interface")
	case len(b.networks) > 0:
		return cli.Misuse("--breakdown and --beside: want one of the two (packages' sockets are not split)")
	case b.iters > breakdownIters:
		return cli.Misuse("--iters %d: want 1 to %d with --breakdown", b.iters, breakdownIters)
	}
	for _, size := range b.sizes {
		if size < breakdownSize {
			return cli.Misuse("--size %d: want %d or more with --breakdown, for the message's number",
				size, breakdownSize)
		}
	}
	b.keyCost, b.measure = nil, (*client).breakdown
	b.cluster.Wrap = func(l transport.Link) (_ transport.Link, err error) {
		if b.link, err = newPassages(l); err != nil {
			return nil, fmt.Errorf("--link %s: %w", b.cluster.Kind, err)
		}
		return b.link, nil
	}
	return nil
}

// split is the round trips of a size: their parts, and what the stamps cost.
type split struct {
	plain, whole, sum *hdrhistogram.Histogram // round trips: without stamps, with them; the parts' sum
	parts             [numParts]*hdrhistogram.Histogram
	hardware          *hdrhistogram.Histogram
	trips             []splitTrip
	lost              uint64
	allocs            float64 // of the round trips without stamps
	measured          int     // with stamps
}

// splitTrip is a round trip and its parts.
type splitTrip struct {
	whole time.Duration
	parts [numParts]time.Duration
}

// usual is the share of round trips whose parts' shares are told: not the slowest, which are few
// and outweigh the others.
const usual = 0.9

// shares returns the parts' shares of the time of the usual round trips.
func (s *split) shares() (shares [numParts]float64) {
	slices.SortFunc(s.trips, func(a, b splitTrip) int { return cmp.Compare(a.whole, b.whole) })
	var sums [numParts]time.Duration
	var all time.Duration
	for _, t := range s.trips[:int(math.Ceil(usual*float64(len(s.trips))))] {
		for i, d := range t.parts {
			sums[i] += d
			all += d
		}
	}
	for i := range shares {
		shares[i] = float64(sums[i]) / float64(max(1, all))
	}
	return shares
}

func newSplit() *split {
	s := &split{plain: newTimes(), whole: newTimes(), sum: newTimes(), hardware: newTimes()}
	for i := range s.parts {
		s.parts[i] = newTimes()
	}
	return s
}

// add counts a round trip, unless its stamps contradict each other.
func (s *split) add(t trip, u turn) {
	p, hardware, ok := parts(t, u)
	if !ok {
		return
	}
	var sum time.Duration
	for i, d := range p {
		_ = s.parts[i].RecordValue(int64(d))
		sum += d
	}
	s.trips = append(s.trips, splitTrip{t.whole, p})
	_ = s.whole.RecordValue(int64(t.whole))
	_ = s.sum.RecordValue(int64(sum))
	if hardware > 0 {
		_ = s.hardware.RecordValue(int64(hardware))
	}
}

// breakdown measures round trips with node 1, and splits them.
func (c *client) breakdown(ctx context.Context, r *result) error {
	s, p := newSplit(), c.pinger(c.peers[0], r.SizeBytes)
	defer p.forget()
	turns := min(max(1, r.Iters/breakdownTurn), breakdownTurns)
	n := (r.Iters + turns - 1) / turns
	r.Iters = n * turns
	begun := time.Now()
	for turn := range turns {
		if err := c.breakdownTurn(ctx, s, p, byte(turn), n); err != nil {
			return err
		}
	}
	if s.plain.TotalCount() == 0 || s.whole.TotalCount() == 0 {
		return fmt.Errorf("--breakdown: of %d round trips with stamps %d count, and %d were lost (%s)",
			s.measured, s.whole.TotalCount(), s.lost, "does the NIC's driver stamp? ethtool -T says")
	}
	halves := newTimes()
	for _, bar := range s.plain.Distribution() {
		if bar.Count > 0 {
			_ = halves.RecordValues(bar.To/2, bar.Count) // none is longer than half of maxTime
		}
	}
	r.recordPingPong(halves, time.Since(begun))
	r.MsgsPerS, r.TxPerS, r.MBPerS = 0, 0, 0 // of two kinds of round trips
	r.Allocs, r.Lost = s.allocs/float64(r.Iters), s.lost
	r.Breakdown = s.result()
	return nil
}

// breakdownTurn measures n round trips without stamps, and n with them.
func (c *client) breakdownTurn(ctx context.Context, s *split, p *pinger, turn byte, n int) error {
	if err := c.note(ctx, false, turn); err != nil {
		return err
	}
	if err := c.warmUp(ctx, p, n/warmUpShare); err != nil {
		return err
	}
	since := allocations()
	err := c.repeat(ctx, n, func(ctx context.Context) error {
		half, err := p.round(ctx)
		if err == nil {
			_ = s.plain.RecordValue(2 * int64(half))
		}
		return err
	})
	s.lost += p.lost
	s.allocs += since()
	if err == nil {
		err = c.note(ctx, true, turn)
	}
	if err == nil {
		err = c.warmUp(ctx, p, n/warmUpShare)
	}
	trips := make(map[uint32]trip, n)
	for begun := time.Now(); err == nil && len(trips) == 0 && time.Since(begun) < stampTime; {
		err = c.repeat(ctx, 1, func(ctx context.Context) error { return c.notedRound(ctx, p, trips) })
	}
	clear(trips)
	if err == nil {
		s.measured += n
		err = c.repeat(ctx, n, func(ctx context.Context) error { return c.notedRound(ctx, p, trips) })
	}
	s.lost += p.lost
	if err != nil {
		return err
	}
	records, err := c.x.Ask(ctx, c.peers[0], []byte{askRecords})
	for ; len(records) >= recordLen; records = records[recordLen:] {
		number, u := parseRecord(records)
		if t, ok := trips[number]; ok {
			s.add(t, u)
			delete(trips, number)
		}
	}
	return err
}

// note switches stamps on or off, at both nodes.
func (c *client) note(ctx context.Context, on bool, turn byte) error {
	request := []byte{askNote, 0, turn}
	if on {
		request[1] = 1
	}
	why, err := c.x.Ask(ctx, c.peers[0], request)
	if err == nil && len(why) > 0 {
		err = fmt.Errorf("node %d: %s", c.peers[0], why)
	}
	if err != nil {
		return err
	}
	return c.link.note(on)
}

// notedRound is a round trip with stamps. It is one of trips if nothing else passed meanwhile.
func (c *client) notedRound(ctx context.Context, p *pinger, trips map[uint32]trip) error {
	c.link.take() // what has passed since the last
	called := time.Now()
	p.begin(ctx, called)
	if err := p.port.Send(p.ctx, p.to, p.b); err != nil {
		return p.fault(ctx, err)
	}
	if err := p.await(ctx); err != nil {
		return err
	}
	returned := time.Now()
	sent, came := c.link.take()
	var t trip
	if !t.departed(called, sent) || !t.arrived(came, returned) {
		return nil
	}
	t.whole, t.between = returned.Sub(called), wall(sent.stamp.Software, came.stamp.Software)
	if from, to := sent.stamp.Hardware, came.stamp.Hardware; !from.IsZero() && !to.IsZero() {
		t.hardware = to.Sub(from)
	}
	trips[p.seq] = t
	return nil
}
