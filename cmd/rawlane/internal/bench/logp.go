package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// The benchmark logp measures the parameters of the LogP model. Node 0 sends bursts of M messages
// and computes for a time Delta after each. The average time per message is
//
//	M = 1, Delta = 0           o_s: the sending call alone
//	M large, Delta = 0         the gap, or o_s if that is longer
//	M any, Delta > round trip  o_s + Delta + o_r: each echo comes while node 0 computes
//
// and L is the rest of half a round trip: RTT/2 - o_s - o_r.
//
// Delta is many times o_r, and the speed of a processor changes. So a burst of delays alone follows
// each burst with messages, and only the difference counts.
//
// Source: MCD §5.1.1; D. Culler et al., Assessing Fast Network Interfaces, IEEE Micro, February
// 1996.

const logpLong = `Measures the parameters of the LogP model between node 0 and node 1, in microseconds:

    os     the sender's processor's time for a message: what the call takes that sends a single one
    or     the receiver's: how much longer a message and a computation take if the message's echo
           comes meanwhile and is received afterwards, less os
    gap    the time between two messages of a long burst, at the pace at which node 1 gets them
    RTT/2  half of a round trip, between two nodes that wait for nothing else
    L      what is left of it: RTT/2 - os - or

What a look at the clock takes is measured and subtracted. Nothing is raised to zero. L is negative
where a message is on its way, or has arrived, before the call that sends it returns: a veth has no
wire, and the sender's core does all of the link's work. Nodes that share a core, or cores that
others want, too, make RTT/2 and so L longer. Other nodes than 0 and 1 are idle.

  rawlane bench logp --link ring
  rawlane bench logp --interface eth0 --node 0 --size 4      and --node 1 on the other machine`

const (
	// logpTurns is the number of turns in which all quantities are measured, so that a change of
	// the machine's speed changes all of them.
	logpTurns = 10
	// logpLongBurst is the length of a burst for the gap: a receiver's ring holds as many messages.
	logpLongBurst = 1000
	// logpBurst is the greatest length of a burst with delays.
	logpBurst = 16
	// logpBlind is the longest time of such a burst, unless a single delay is longer.
	logpBlind = 100 * time.Microsecond
	// logpSlack is the time of the delay beyond one and a half round trips.
	logpSlack = 5 * time.Microsecond
	// logpDelay is the longest delay.
	logpDelay = 2 * time.Millisecond
	// logpTimeout bounds the bursts with delays in a turn: on a slow network a few hundred are
	// enough, and on a busy machine some more give one whose echo comes in time.
	logpTimeout = 300 * time.Millisecond
	// logpLooseTimeout bounds them if no echo has come in time.
	logpLooseTimeout = 3 * time.Second
	// logpAway is the longest time without the core: later the endpoint's own goroutine may receive
	// the echo.
	logpAway = 150 * time.Microsecond
	// logpMaxBursts bounds the results that are kept; more would not move the median.
	logpMaxBursts = 1_000_000
)

// logpClient measures between node 0 and one other.
type logpClient struct {
	c     *client
	ping  *pinger
	in    []byte        // received message
	clock time.Duration // the time of reading the clock

	delay spinner
	burst int           // M, of bursts with delays
	loose bool          // late echoes count, too, because there are no others
	away  time.Duration // least time without the core before the poll for an echo; more if echoes are late

	halves *hdrhistogram.Histogram // of round trips
	sends  *hdrhistogram.Histogram // single ones; the clock included
	both   []float64               // o_s + o_r of each burst, in ns
	alone  []float64               // the delay of each burst, in ns
	gaps   []float64               // of each long burst
	takes  []float64               // time per message of each long burst at the sender
	late   int                     // messages that do not count because the echo was late
	sent   uint64
}

// logp measures o_s, L, o_r and the gap between nodes 0 and 1.
func (c *client) logp(ctx context.Context, r *result) error {
	m := &logpClient{
		c: c, ping: c.pinger(c.peers[0], r.SizeBytes), in: make([]byte, r.SizeBytes+1), clock: clockCost(),
		halves: newTimes(), sends: newTimes(),
	}
	defer m.ping.forget()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	since := allocations()
	n := (r.Iters + logpTurns - 1) / logpTurns
	r.Iters = n * logpTurns
	for range logpTurns {
		if err := m.turn(ctx, n); err != nil {
			return err
		}
	}
	r.Allocs = since() / float64(m.sent)
	r.Lost += m.ping.lost
	return m.result(r)
}

// clockCost returns the median time between two readings of the clock.
func clockCost() time.Duration {
	times := make([]time.Duration, 1001)
	for i := range times {
		start := time.Now()
		times[i] = time.Since(start)
	}
	return median(times)
}

// prepare warms up, and finds a delay longer than a round trip.
func (m *logpClient) prepare(ctx context.Context) error {
	const rounds, tries = 50, 20
	for i, begun := 0, time.Now(); i < rounds || time.Since(begun) < settle; i++ {
		if err := m.roundTrip(ctx); err != nil && !errors.Is(err, errLost) {
			return err
		}
	}
	if m.halves.TotalCount() == 0 {
		return fmt.Errorf("all messages of %d bytes were lost", len(m.ping.b))
	}
	quick := 2 * time.Duration(m.halves.ValueAtPercentile(10)) // so that a busy moment does not make it long
	delta := min(quick*3/2+logpSlack, logpDelay)
	m.delay, m.burst = newSpinner(delta), min(max(1, int(logpBlind/delta)), logpBurst)
	for {
		m.late = 0
		if err := m.c.repeat(ctx, tries, m.pair); err != nil {
			return err
		}
		if m.late < tries*m.burst/2 {
			break
		}
		if m.away = 2*m.away + logpSlack; m.away > logpAway/2 {
			break
		}
	}
	if err := m.loosen(ctx); err != nil {
		return err
	}
	if len(m.both) == 0 {
		return fmt.Errorf("node %d answers later than %v: too late to measure or (is another program on these cores?)",
			m.ping.to.Node, delta)
	}
	m.halves.Reset()
	m.both, m.alone, m.late, m.ping.lost, m.sent = nil, nil, 0, 0, 0
	return nil
}

// turn measures each quantity with n messages, and the gap with a long burst at least.
func (m *logpClient) turn(ctx context.Context, n int) error {
	if err := m.c.repeat(ctx, n, m.roundTrip); err != nil {
		return err
	}
	if err := m.c.repeat(ctx, n, m.single); err != nil {
		return err
	}
	bursts := min((n+m.burst-1)/m.burst, logpMaxBursts/logpTurns)
	for begun := time.Now(); (bursts > 0 || len(m.both) == 0) && time.Since(begun) < logpTimeout; bursts-- {
		if err := m.c.repeat(ctx, 1, m.pair); err != nil {
			return err
		}
	}
	if err := m.loosen(ctx); err != nil {
		return err
	}
	return m.c.repeat(ctx, (n+logpLongBurst-1)/logpLongBurst, m.longBurst)
}

// loosen is for machines where other programs keep the core for long. If no burst has counted, late
// echoes count, too, though the endpoint's own goroutine may have received them.
func (m *logpClient) loosen(ctx context.Context) error {
	for begun := time.Now(); len(m.both) == 0 && time.Since(begun) < logpLooseTimeout; {
		m.loose = true
		if err := m.c.repeat(ctx, 1, m.pair); err != nil {
			return err
		}
	}
	return nil
}

func (m *logpClient) roundTrip(ctx context.Context) error {
	m.sent++
	half, err := m.ping.round(ctx)
	if err == nil {
		_ = m.halves.RecordValue(int64(half))
	}
	return err
}

// single measures the sending call: M = 1. The next message waits for the echo, so that nothing is
// in its way.
func (m *logpClient) single(ctx context.Context) error {
	p := m.ping
	m.sent++
	p.begin(ctx, time.Now())
	start := time.Now()
	err := p.port.Send(p.ctx, p.to, p.b)
	took := time.Since(start)
	if err != nil {
		return p.fault(ctx, err)
	}
	_ = m.sends.RecordValue(int64(took))
	return p.await(ctx)
}

// pair measures a burst with echoes and one of delays alone, each after a round trip. The wait for
// that keeps the endpoint's own goroutine asleep for the next 250 µs.
func (m *logpClient) pair(ctx context.Context) error {
	if err := m.roundTrip(ctx); err != nil {
		return err
	}
	with, ok, err := m.echoes(ctx)
	if err != nil || !ok {
		return err
	}
	if err := m.roundTrip(ctx); err != nil {
		return err
	}
	var alone time.Duration
	for range m.burst {
		start := time.Now()
		m.delay.spin()
		alone += time.Since(start) - m.clock
	}
	alone /= time.Duration(m.burst)
	m.both = append(m.both, float64(with-alone))
	m.alone = append(m.alone, float64(alone))
	return nil
}

// echoes sends a burst with delays, and receives an echo after each. It returns the mean time of
// the messages whose echo came in time; ok is false without any.
func (m *logpClient) echoes(ctx context.Context) (mean time.Duration, ok bool, err error) {
	var sum time.Duration
	came := 0
	for range m.burst {
		took, inTime, err := m.echoed(ctx)
		if err != nil {
			return 0, false, err
		}
		if inTime {
			sum += took
			came++
		}
	}
	m.late += m.burst - came
	return sum / time.Duration(max(came, 1)), came > 0, nil
}

// echoed sends one message, computes, and receives the echo. In between it gives its core away, for
// a time that does not count: on a shared core the other node cannot answer before.
func (m *logpClient) echoed(ctx context.Context) (took time.Duration, inTime bool, err error) {
	p := m.ping
	m.sent++
	p.begin(ctx, time.Now())
	start := time.Now()
	if err := p.port.Send(p.ctx, p.to, p.b); err != nil {
		return 0, false, p.fault(ctx, err)
	}
	m.delay.spin()
	took = time.Since(start)
	given := time.Now()
	for launch.YieldCore(); time.Since(given) < m.away; {
		launch.YieldCore()
	}
	look := time.Now()
	n, from, ok, err := p.port.TryRecv(m.in)
	took += time.Since(look) - 2*m.clock
	if err != nil && !isLonger(err) {
		return 0, false, err
	}
	if err != nil || !ok || !p.echoes(m.in[:n], from) {
		return 0, false, p.await(ctx)
	}
	return took, m.loose || look.Sub(given) < logpAway, nil
}

// longBurst measures the time between messages at node 1 without a pause: M large.
func (m *logpClient) longBurst(ctx context.Context) error {
	to, b := mcd.Addr{Node: m.ping.to.Node, Port: benchData}, m.ping.b
	before, err := m.c.ask(ctx, to.Node)
	if err != nil {
		return err
	}
	m.sent += logpLongBurst
	start := time.Now()
	for range logpLongBurst {
		if err := m.c.data.Send(ctx, to, b); err != nil {
			return err
		}
	}
	sending := time.Since(start)
	arrived, err := m.c.ask(ctx, to.Node)
	if err != nil {
		return err
	}
	elapsed, received := time.Since(start), arrived-before
	if received > logpLongBurst {
		return fmt.Errorf("%d messages sent and %d received", logpLongBurst, received)
	}
	m.ping.lost += logpLongBurst - received
	if received > 0 {
		m.gaps = append(m.gaps, float64(elapsed)/float64(received))
		m.takes = append(m.takes, float64(sending)/logpLongBurst)
	}
	return nil
}
