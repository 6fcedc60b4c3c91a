package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// echo is a world of nodes that answer "ping" by "pong", and send a ping when their time has come.
type echo struct{ Net }

type echoNode struct {
	w    *echo
	me   int
	next monotime.Time
}

func (n *echoNode) Receive(_ monotime.Time, f *Frame) {
	if f.Kind == "ping" {
		n.w.Post(Frame{From: n.me, To: []int{f.From}, Kind: "pong", Text: "pong"})
	}
}

func (n *echoNode) Deadline() (monotime.Time, bool) { return n.next, !n.next.IsZero() }

func (n *echoNode) Advance(monotime.Time) {
	n.next = monotime.Time{}
	n.w.Post(Frame{From: n.me, To: []int{1, 2}, Kind: "ping", Text: "ping"})
}

func newEcho(times bool) *echo {
	w := &echo{Net{Trip: time.Millisecond, Times: times}}
	w.Start()
	for k := range 3 {
		w.Nodes = append(w.Nodes, &echoNode{w: w, me: k})
	}
	w.Nodes[0].(*echoNode).next = w.Now.Add(time.Second)
	return w
}

func (w *echo) Do(words []string) error {
	_, err := w.Net.Do(words)
	return err
}

func (w *echo) Happened() string { return strings.Join(w.Net.Happened(), "\n") }

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		times bool
		story string
	}{
		{"filters and deliveries", false, `# node 0 sends when a second has passed
advance 999ms
advance 1ms
deliver drop=pong:2->0
----
0->* ping   1->0 pong   2->0 pong (lost to 0)
`},
		{"instants, a copy that comes again, a node that is down", true, `crash 2
advance 1s
advance 1ms copy1=p*:*->*
----
+1.001s    0->* ping (a copy held to 1) (2 is down)

advance 5ms
release
advance 1ms
----
+1ms       1->0 pong
+5ms       0->1 ping
+6ms       1->0 pong
`},
		{"held", true, "advance 2s hold=ping:0->1 drop=pong:*->*\nrelease\n----\n" +
			"+1.001s    0->* ping (held to 1)\n+1.002s    2->0 pong (lost to 0)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			is, err := Replay(c.story, newEcho(c.times))
			if err != nil || is != c.story {
				t.Errorf("%v, it is now:\n%s", err, is)
			}
		})
	}
}

// What is alike is shown once, where there is much of it.
func TestHappened_Many(t *testing.T) {
	w := newEcho(true)
	w.Alike = func(text string) string { return text[:4] }
	for i := range many {
		w.Note("frame %d", i)
	}
	w.Note("other")
	if got, want := w.Happened(), fmt.Sprintf("frame 0 (%d times)   other", many); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReplay_Malformed(t *testing.T) {
	for _, story := range []string{
		"foo", "advance", "advance soon", "advance 1s drop=ping", "deliver lose=ping:0->1", "crash", "crash 3", "crash x",
	} {
		if _, err := Replay("advance 1ms\n"+story, newEcho(false)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error of line 2", story, err)
		}
	}
}

func TestDifference(t *testing.T) {
	if got := difference("a\nb\n", "a\nc\n"); !strings.Contains(got, "line 2: c") || !strings.Contains(got, "b") {
		t.Errorf("%q", got)
	}
	if got := difference("a\nb", "a"); got != "shorter" {
		t.Errorf("%q", got)
	}
}
