//go:build linux

// Package hostile has a third station send frames at line rate at one of two nodes that talk, each
// in a network namespace of its own, on one kernel bridge. The frames are what the nodes have sent,
// recorded, and made wrong in each of some ways.
//
// It counts what is delivered that node 0 has not sent, how much slower the nodes get, and what
// memory, goroutines and descriptors it costs.
package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
)

// Half is half a round trip. What was lost counts in the mean, as long as node 0 waited for it.
type Half struct{ Median, Mean time.Duration }

// Config is an attack.
type Config struct {
	Keys   bool   // the cluster has a key
	Strict bool   // judge a cluster without a key as if it had one: what proves that Run counts
	Frames uint64 // that the attacker sends
	Seed   uint64
}

// Outcome is what an attack has come to.
type Outcome struct {
	Sent     uint64            // hostile frames
	Judged   uint64            // of them, the kernel gave so many to node 1, which took or dropped them
	Accepted uint64            // delivered, and not what node 0 has just sent
	Drops    map[string]uint64 // of node 1, by cause
	Genuine  uint64            // messages delivered
	Lost     uint64            // questions of node 0 without an answer
	Rate     float64           // hostile frames sent each second

	// Half a round trip: with no attack, with the same frames sent to a station that does not
	// matter, and with the attack.
	Quiet, Elsewhere, Attacked Half

	HeapGrown, Goroutines, Descriptors int // more than before; the heap in bytes
	Wrong                              []string
}

const (
	recorded    = 64      // how many frames the attacker has to make others of
	made        = 4096    // hostile frames that are made beforehand, and sent in turns
	rounds      = 5       // of each of the three phases
	heapAllowed = 4 << 20 // bytes: far less than one byte a frame
)

// Slower is how much longer half a round trip may take under attack than while the same frames go
// elsewhere.
const Slower = 2.0

// attack is one at work.
type attack struct {
	cfg     Config
	bed     *testbed.Bed
	v       *victims
	link    transport.Link // the attacker's
	hostile []transport.Frame
	sent    [kinds]uint64
	next    int
	o       Outcome
	times   [3][]Half     // of the rounds, by phase
	busy    time.Duration // while the attacker sent
}

// Run attacks. Its error is one of the machinery; broken promises are in the outcome.
func Run(ctx context.Context, cfg Config) (o Outcome, err error) {
	bed, err := testbed.New(testbed.Config{Nodes: bedNodes})
	if err != nil {
		return o, err
	}
	a := &attack{cfg: cfg, bed: bed}
	defer func() { err = errors.Join(err, bed.Close()) }()
	var keys *keyring.Ring
	if cfg.Keys {
		keys = keyring.New()
	}
	if a.v, err = openVictims(bed, keys); err != nil {
		return o, errors.Join(err, a.v.close())
	}
	defer func() { err = errors.Join(err, a.v.close()) }()
	if a.link, err = openPacket(bed.Node(attacker)); err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, a.link.Close()) }()
	if err := a.prepare(ctx); err != nil {
		return o, err
	}
	if err := a.run(ctx); err != nil {
		return o, err
	}
	a.judge()
	return a.o, nil
}

func openPacket(n *testbed.Node) (transport.Link, error) {
	return testbed.In(n, func() (transport.Link, error) {
		return packet.Open(testbed.Interface(0), packet.Config{BypassQdisc: true})
	})
}

// prepare records what the victims say, and makes hostile frames of it.
func (a *attack) prepare(ctx context.Context) (err error) {
	// Otherwise the bridge would give the attacker, who sends with node 0's address, node 0's
	// frames: no key helps against that.
	if err := a.bed.SetLearning(attacker, 0, false); err != nil {
		return err
	}
	other, err := openPacket(a.bed.Node(bystander))
	if err != nil {
		return err
	}
	all := transport.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	_, err = other.Send([]transport.Frame{{Dst: all, EtherType: transport.EtherTypeDefault + 1}}) // the bridge learns
	if err := errors.Join(err, other.Close()); err != nil {
		return err
	}
	tap, err := openPacket(a.bed.Node(server))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tap.Close()) }()
	for range recorded {
		if err := a.v.askUntilHeard(ctx); err != nil {
			return err
		}
	}
	s := &station{rng: rand.New(rand.NewPCG(a.cfg.Seed, 0)), keys: a.cfg.Keys, own: a.link.MAC(), mtu: a.link.MTU()}
	if s.recorded, err = record(tap, recorded); err != nil {
		return err
	}
	if a.cfg.Keys {
		if s.foreign, err = otherKey(recorded); err != nil {
			return err
		}
	}
	for i := range made {
		a.hostile = append(a.hostile, s.frame(kind(i)%kinds))
	}
	return nil
}

// run goes through the phases in turns.
func (a *attack) run(ctx context.Context) error {
	before := measure()
	began, genuine := a.arrived(), a.v.genuine.Load()
	counters := a.drops()
	each := max(a.cfg.Frames/rounds, 1)
	away := slices.Clone(a.hostile)
	for i := range away {
		away[i].Dst = testbed.MAC(bystander, 0)
	}
	for range rounds {
		for phase, frames := range [][]transport.Frame{nil, away, a.hostile} {
			if err := a.phase(ctx, phase, frames, each); err != nil {
				return err
			}
		}
	}
	if err := a.v.askUntilHeard(ctx); err != nil {
		a.o.Wrong = append(a.o.Wrong, err.Error())
	}
	a.settle(ctx)
	after := measure()
	a.o.HeapGrown, a.o.Goroutines = after.heap-before.heap, after.goroutines-before.goroutines
	a.o.Descriptors = after.descriptors - before.descriptors
	a.o.Drops = a.drops()
	for name, n := range counters {
		a.o.Drops[name] -= n
	}
	a.o.Genuine, a.o.Accepted = a.v.genuine.Load()-genuine, a.v.accepted.Load()
	a.o.Judged = a.arrived() - began - a.o.Genuine
	return nil
}

// phase has the victims talk while the attacker sends.
func (a *attack) phase(ctx context.Context, phase int, frames []transport.Frame, count uint64) error {
	ended := make(chan error, 1)
	go func() { ended <- a.flood(ctx, frames, count) }()
	var times []time.Duration
	timer := time.NewTimer(again)
	for least := time.Now().Add(30 * time.Millisecond); ; {
		took, ok := a.v.ask(ctx, timer)
		times = append(times, took)
		if !ok {
			a.o.Lost++
		}
		if frames == nil && time.Now().Before(least) && ctx.Err() == nil {
			continue
		}
		select {
		case err := <-ended:
			a.times[phase] = append(a.times[phase], half(times))
			return err
		default:
		}
	}
}

func half(times []time.Duration) Half {
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	slices.Sort(times)
	return Half{times[len(times)/2] / 2, sum / time.Duration(2*len(times))}
}

// middle is the median of the rounds, of each figure.
func middle(rounds []Half) Half {
	var medians, means []time.Duration
	for _, h := range rounds {
		medians, means = append(medians, h.Median), append(means, h.Mean)
	}
	slices.Sort(medians)
	slices.Sort(means)
	return Half{medians[len(medians)/2], means[len(means)/2]}
}

// flood sends frames as fast as the link takes them.
func (a *attack) flood(ctx context.Context, frames []transport.Frame, count uint64) error {
	if frames == nil {
		return ctx.Err()
	}
	hostile := frames[0].Dst == testbed.MAC(server, 0)
	const batch = 64
	began := time.Now()
	for count > 0 && ctx.Err() == nil {
		i := a.next % made
		some := frames[i:min(i+batch, made)]
		n, err := a.link.Send(some[:min(uint64(len(some)), count)])
		a.next, count = a.next+n, count-uint64(n)
		for k := i; hostile && k < i+n; k++ {
			a.sent[kind(k)%kinds]++
		}
		if n == 0 && !errors.Is(err, transport.ErrBusy) && err != nil {
			return fmt.Errorf("send a hostile frame: %w", err)
		}
	}
	if hostile {
		a.busy += time.Since(began)
	}
	return ctx.Err()
}

// settle waits until node 1 has taken all that has arrived.
func (a *attack) settle(ctx context.Context) {
	e := a.v.es[server]
	for last := uint64(0); ctx.Err() == nil; {
		now := e.LinkCounters(0).RxFrames
		if now == last {
			return
		}
		last = now
		time.Sleep(100 * time.Millisecond)
	}
}

// arrived are the frames that node 1 has got, but for contact, which the victims keep up
// themselves.
func (a *attack) arrived() uint64 {
	e := a.v.es[server]
	return e.LinkCounters(0).RxFrames - e.Counters().RxContacts
}

// drops are the counters of what node 1 has dropped.
func (a *attack) drops() map[string]uint64 {
	all := map[string]uint64{}
	b, err := json.Marshal(a.v.es[server].Counters())
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		panic(err) // they are numbers
	}
	maps.DeleteFunc(all, func(name string, _ uint64) bool { return !strings.HasPrefix(name, "drop_") })
	return all
}

// judge says what is wrong.
func (a *attack) judge() {
	o := &a.o
	allowed, dropped := uint64(0), uint64(0)
	for k, n := range a.sent {
		o.Sent += n
		if !a.cfg.Keys && !a.cfg.Strict && kind(k).valid() {
			allowed += n
		}
	}
	for _, n := range o.Drops {
		dropped += n
	}
	o.Rate = float64(o.Sent) / a.busy.Seconds()
	o.Quiet, o.Elsewhere, o.Attacked = middle(a.times[0]), middle(a.times[1]), middle(a.times[2])
	wrong := func(is bool, format string, args ...any) {
		if is {
			o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...))
		}
	}
	wrong(o.Accepted > allowed, "%d hostile frames were accepted, want %d at most", o.Accepted, allowed)
	wrong(o.Judged != o.Accepted+dropped, "of %d hostile frames %d were accepted and %d counted as dropped: "+
		"the counters do not add up", o.Judged, o.Accepted, dropped)
	wrong(o.Judged == 0, "no hostile frame has reached its victim")
	wrong(o.HeapGrown > heapAllowed, "the heap has grown by %d bytes, want %d at most", o.HeapGrown, heapAllowed)
	wrong(o.Goroutines > 0 || o.Descriptors > 0, "%d more goroutines and %d more descriptors than before",
		o.Goroutines, o.Descriptors)
}

// usage is what the process has.
type usage struct{ heap, goroutines, descriptors int }

func measure() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // none: then none is counted, before and after
	return usage{int(m.HeapAlloc), runtime.NumGoroutine(), len(files)}
}
