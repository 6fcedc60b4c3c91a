package reliable

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
	"github.com/rawlane/rawlane/sim"
)

// Throughput of a stream of full frames, by the loss of each direction and by the window, on a link
// that takes a frame in 1.2 us and has a round trip of 40 us. After -rewrite, read the difference.
func TestPerformance(t *testing.T) {
	const file = "testdata/throughput.txt"
	losses := []float64{0, .0001, .001, .01, .1, .3}
	if testing.Short() {
		losses = []float64{.1, .3} // the fewest frames
	}
	windows := []int{4, 16, 64, Window}
	var b strings.Builder
	b.WriteString("frames per millisecond, of 833 that the link takes; (frames sent per frame taken)\n\n    loss")
	for _, w := range windows {
		fmt.Fprintf(&b, "  %14s", fmt.Sprintf("window %d", w))
	}
	b.WriteString("\n")
	head := b.String()
	b.Reset()
	for _, loss := range losses {
		fmt.Fprintf(&b, "%6.2f %%", 100*loss)
		for _, w := range windows {
			frames, sent := throughput(t, loss, w)
			fmt.Fprintf(&b, "  %7.1f (%.2f)", frames, sent)
		}
		b.WriteString("\n")
	}
	if transcript.Rewrite() {
		if err := os.WriteFile(file, []byte(head+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	want := string(was)
	if testing.Short() {
		want = head + want[max(0, len(want)-b.Len()):] // its last lines
	}
	if err != nil || want != head+b.String() {
		t.Errorf("%v; it is now:\n%s%s\nwas:\n%s", err, head, b.String(), was)
	}
}

// throughput measures 0.3 seconds, from end 0 to 1: frames delivered in a millisecond, and sent for
// each of them.
func throughput(t *testing.T, loss float64, window int) (frames, sent float64) {
	const most = 300 * time.Millisecond
	var q sim.Queue
	var ends [2]*end
	m := &model{}
	var net *sim.Network[[]byte]
	var timers [2]monotime.Time // zero: not set
	var pump func(i int)
	tick := func(i int, at monotime.Time) {
		if timers[i] != at {
			return // replaced
		}
		timers[i] = monotime.Time{}
		ends[i].advance(q.Now())
		pump(i)
	}
	pump = func(i int) {
		e := ends[i]
		for i == 0 && e.c.AllAcked(Requests) || e.c.lanes[0].queued-e.c.lanes[0].una < uint32(window) {
			if i == 1 || !e.write(q.Now(), Requests, e.c.MaxRecord()) {
				break
			}
		}
		for frames := e.next(q.Now()); len(frames) > 0; frames = e.next(q.Now()) {
			for _, b := range frames {
				net.Send(i, 1-i, 0, slices.Clone(b[headroom:]))
			}
		}
		if at, ok := e.c.Deadline(); ok && (timers[i].IsZero() || at.Before(timers[i])) {
			if at.Before(q.Now()) {
				at = q.Now()
			}
			timers[i] = at
			q.At(at, func() { tick(i, at) })
		}
	}
	net = sim.NewNetwork(&q, sim.Config{Nodes: 2, Os: 1200 * time.Nanosecond, L: 18 * time.Microsecond, Or: 800 * time.Nanosecond,
		Faults: sim.Faults{Loss: loss}, Seed: 1}, func(to, _, _ int, b []byte) {
		ends[to].receive(q.Now(), b)
		pump(to)
	})
	for i := range ends {
		ends[i] = m.newEnd(i, 1-i, 128, uint32(i+1), 0)
	}
	pump(0)
	for m.wrong == "" && q.Now().Since() < most && q.Step() {
	}
	if m.wrong != "" || ends[0].failures > 0 {
		t.Fatal(m.wrong, ends[0].failures)
	}
	taken := float64(ends[1].c.cfg.Counters.Delivered)
	return taken / float64(most/time.Millisecond), float64(ends[0].c.cfg.Counters.Sent) / taken
}
