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
}

// wire sends one frame after the other.
type wire struct{ free monotime.Time }

const (
	incastFrame   = 1200 * time.Nanosecond // of a full frame on the wire
	incastControl = incastFrame / 15       // of any other
	incastJitter  = incastFrame / 4        // a host takes up to so much longer: else the phases of
	// hosts decide who loses frames (Floyd and Jacobson, "On traffic phase effects", 1991)
	incastHop = 5 * time.Microsecond // from a host to the switch, or back
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
	timer   monotime.Time
	armed   bool
	timeout int // RTOs
}

func newIncast(senders, queueLen int, seed uint64) *incast {
	n := &incast{model: &model{}, queueLen: queueLen, rng: rand.New(rand.NewPCG(seed, 3))}
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

func (e *incastEnd) pump() {
	now := e.n.Now()
	for e.sends && e.c.Unsent(Requests) < Window/4 && e.write(now, Requests, e.c.MaxRecord()) {
	}
	for frames := e.next(now); len(frames) > 0; frames = e.next(now) {
		for _, f := range frames {
			b := slices.Clone(f[headroom:])
			takes := incastControl
			if Kind(b[0]&0xf) == Data {
				takes = incastFrame
			}
			host := time.Duration(e.n.rng.Int64N(int64(incastJitter)))
			e.n.At(e.nic.send(now, takes+host).Add(incastHop), func() { e.n.forward(e.peer, b, takes) })
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
		n.After(incastHop, arrive)
		return
	}
	if n.queued >= n.queueLen {
		n.dropped++
		return
	}
	n.queued++
	n.At(n.port.send(n.Now(), takes), func() {
		n.queued--
		n.After(incastHop, arrive)
	})
}

// run runs for a time, and returns the used part of the line and Jain's index of fairness.
func (n *incast) run(t *testing.T, d time.Duration) (line, fairness float64) {
	for n.wrong == "" && n.Now().Sub(n.start) < d && n.Step() {
	}
	if n.wrong != "" {
		t.Fatal(n.wrong)
	}
	var sum, squares float64
	for _, r := range n.receivers {
		x := float64(r.c.cfg.Counters.Delivered)
		sum += x
		squares += x * x
	}
	return sum * float64(incastFrame) / float64(d), sum * sum / (float64(len(n.receivers)) * squares)
}

func (n *incast) timeouts() (sum int) {
	for _, s := range n.senders {
		sum += s.timeout
	}
	return sum
}

// The line is used up, and shared fairly, by 32 senders at a queue that holds one frame of each,
// or more. The log is a table of other numbers, too.
func TestIncast(t *testing.T) {
	const d = 200 * time.Millisecond
	numbers, queues := []int{2, 8, 16, 32}, []int{32, 128, 512}
	if testing.Short() {
		numbers, queues = numbers[3:], queues[:1]
	}
	var b strings.Builder
	for _, senders := range numbers {
		for _, queueLen := range queues {
			n := newIncast(senders, queueLen, 1)
			line, fairness := n.run(t, d)
			var sent, delivered uint64
			for i := range n.senders {
				sent += n.senders[i].c.cfg.Counters.Sent
				delivered += n.receivers[i].c.cfg.Counters.Delivered
			}
			fmt.Fprintf(&b, "%7d  %5d  %5.1f %%  %8.3f  %14.2f  %8d\n", senders, queueLen, 100*line, fairness,
				float64(sent)/float64(delivered), n.timeouts())
			if senders == 32 && (line < .97 || fairness < .9) {
				t.Errorf("%d senders, queue of %d: %.1f %% of the line, Jain's index %.3f", senders, queueLen, 100*line, fairness)
			}
		}
	}
	t.Logf("%v\nsenders  queue     line  fairness  sent per frame  timeouts\n%s", d, b.String())
}
