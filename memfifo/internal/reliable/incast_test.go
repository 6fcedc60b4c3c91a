package reliable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
)

// incast is many senders that stream to one receiver, through a switch whose port to the receiver
// has a small queue.
//
//	sender 1 --\
//	sender 2 ---[switch |queue]-- receiver
//	sender n --/
type incast struct {
	sim.Queue
	*model
	queueLen, queued, dropped int // frames at the switch's port to the receiver
	port                      wire
	back                      wire // of the receiver
	senders, receivers        []*incastEnd
	start                     monotime.Time
	rng                       *rand.Rand
	line
}

// line is the wires, and how long a full frame is on each.
type line struct {
	name  string
	frame time.Duration // on the receiver's wire
	nic   time.Duration // on a sender's
	hop   time.Duration // from a host to the switch, or back

	warm      time.Duration // until it is measured
	intervals int           // of incastInterval each, in which it is
}

var (
	fastLine = line{"10 Gbit/s", 1200 * time.Nanosecond, 1200 * time.Nanosecond, 5 * time.Microsecond, 0, 1}
	// slowLine is that of bench/incast: behind a bridge, and hosts that sleep.
	slowLine = line{"100 Mbit/s", 121 * time.Microsecond, 2 * time.Microsecond, 50 * time.Microsecond, time.Second, 5}
)

// wire sends one frame after the other.
type wire struct{ free monotime.Time }

const (
	incastInterval = 200 * time.Millisecond

	incastControl = 15 // a frame that is not full is so much shorter
	incastJitter  = 4  // a host takes up to this part of a frame's time longer: else the phases of
	// hosts decide who loses frames (Floyd and Jacobson, "On traffic phase effects", 1991)
)

// send returns when a frame that takes so long has left.
func (w *wire) send(now monotime.Time, takes time.Duration) monotime.Time {
	if w.free.Before(now) {
		w.free = now
	}
	w.free = w.free.Add(takes)
	return w.free
}

type incastEnd struct {
	*end
	n       *incast
	nic     *wire
	peer    *incastEnd
	sends   bool
	round   int // frames that are written at once, when all before are acknowledged; 0: a stream
	timer   monotime.Time
	armed   bool
	timeout int // RTOs
}

func newIncast(l line, senders, queueLen int, seed uint64) *incast {
	n := &incast{line: l, model: &model{}, queueLen: queueLen, rng: rand.New(rand.NewPCG(seed, 3))}
	for i := range senders {
		s := &incastEnd{end: n.newEnd(i, senders, 128, uint32(2*i+1), 0), n: n, nic: new(wire), sends: true}
		r := &incastEnd{end: n.newEnd(senders, i, 128, uint32(2*i+2), 0), n: n, nic: &n.back, peer: s}
		s.peer = r
		n.senders, n.receivers = append(n.senders, s), append(n.receivers, r)
		n.After(time.Duration(i)*time.Microsecond, s.pump)
	}
	n.start = n.Now()
	return n
}

// room is how many frames the program writes now.
func (e *incastEnd) room() int {
	switch {
	case !e.sends, e.round > 0 && !e.c.AllAcked(Requests):
		return 0
	case e.round > 0:
		return e.round
	}
	return Window/4 - e.c.Unsent(Requests)
}

func (e *incastEnd) pump() {
	now := e.n.Now()
	for range e.room() {
		if !e.write(now, Requests, e.c.MaxRecord()) {
			break
		}
	}
	for frames := e.next(now); len(frames) > 0; frames = e.next(now) {
		for _, f := range frames {
			b := slices.Clone(f[headroom:])
			nic, takes := e.n.line.nic, e.n.frame
			if Kind(b[0]&0xf) != Data {
				nic, takes = nic/incastControl, takes/incastControl
			}
			host := time.Duration(e.n.rng.Int64N(int64(e.n.line.nic / incastJitter)))
			e.n.At(e.nic.send(now, nic+host).Add(e.n.hop), func() { e.n.forward(e.peer, b, takes) })
		}
	}
	at, ok := e.c.Deadline()
	if !ok || e.armed && !at.Before(e.timer) {
		return
	}
	if at.Before(now) {
		at = now
	}
	e.timer, e.armed = at, true
	e.n.At(at, func() { e.tick(at) })
}

func (e *incastEnd) tick(at monotime.Time) {
	if !e.armed || e.timer != at {
		return
	}
	e.armed = false
	was := e.c.lanes[0].backoff
	e.advance(at)
	if e.c.lanes[0].backoff > was {
		e.timeout++
	}
	e.pump()
}

// forward takes a frame through the switch. Only the port to the receiver is crowded.
func (n *incast) forward(to *incastEnd, b []byte, takes time.Duration) {
	arrive := func() {
		to.receive(n.Now(), b)
		to.pump()
	}
	if to.sends {
		n.After(n.hop, arrive)
		return
	}
	if n.queued >= n.queueLen {
		n.dropped++
		return
	}
	n.queued++
	n.At(n.port.send(n.Now(), takes), func() {
		n.queued--
		n.After(n.hop, arrive)
	})
}

// run warms up, and then returns means over intervals: the part of the line that new data uses, and
// Jain's index of fairness.
func (n *incast) run(t *testing.T) (use, fairness float64) {
	until := n.start.Add(n.warm)
	n.runUntil(t, until)
	before := make([]uint64, len(n.receivers))
	for range n.intervals {
		for i, r := range n.receivers {
			before[i] = r.c.cfg.Counters.Delivered
		}
		until = until.Add(incastInterval)
		n.runUntil(t, until)
		var sum, squares float64
		for i, r := range n.receivers {
			x := float64(r.c.cfg.Counters.Delivered - before[i])
			sum += x
			squares += x * x
		}
		use += sum * float64(n.frame) / float64(incastInterval)
		fairness += sum * sum / (float64(len(n.receivers)) * squares)
	}
	return use / float64(n.intervals), fairness / float64(n.intervals)
}

func (n *incast) runUntil(t *testing.T, until monotime.Time) {
	for n.wrong == "" && n.Now().Before(until) && n.Step() {
	}
	if n.wrong != "" {
		t.Fatal(n.wrong)
	}
}

func (n *incast) timeouts() (sum int) {
	for _, s := range n.senders {
		sum += s.timeout
	}
	return sum
}

// The line is used up, and shared fairly, by 32 senders: at a queue that holds one frame of each, or
// more, where the wires hold some, too; at one that holds the least windows of all, where they hold
// none. The log is a table of other numbers, too.
func TestIncast(t *testing.T) {
	type row struct {
		line
		senders, queueLen int
	}
	rows := []row{{fastLine, 32, 32}, {slowLine, 32, 32 * minWindow}}
	if !testing.Short() {
		rows = nil
		for _, senders := range []int{2, 8, 16, 32} {
			for _, queueLen := range []int{32, 128, 512} {
				rows = append(rows, row{fastLine, senders, queueLen})
			}
		}
		for _, queueLen := range []int{32, 64, 128, 256} {
			rows = append(rows, row{slowLine, 32, queueLen})
		}
	}
	var b strings.Builder
	for _, r := range rows {
		n := newIncast(r.line, r.senders, r.queueLen, 1)
		use, fairness := n.run(t)
		var sent, delivered uint64
		for i := range n.senders {
			sent += n.senders[i].c.cfg.Counters.Sent
			delivered += n.receivers[i].c.cfg.Counters.Delivered
		}
		fmt.Fprintf(&b, "%10s  %7d  %5d  %5.1f %%  %8.3f  %14.2f  %8d\n", r.name, r.senders, r.queueLen, 100*use, fairness,
			float64(sent)/float64(delivered), n.timeouts())
		small := r.line == slowLine && r.queueLen < r.senders*minWindow
		if r.senders == 32 && !small && (use < .97 || fairness < .9) {
			t.Errorf("%s, %d senders, queue of %d: %.1f %% of the line, Jain's index %.3f", r.name, r.senders, r.queueLen, 100*use, fairness)
		}
	}
	t.Logf("%v\n      line  senders  queue      use  fairness  sent per frame  timeouts\n%s", incastInterval, b.String())
}
