package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/transcript"
)

// rows are the tests of the state table in the package's comment, by its first two columns.
var rows = map[string]func(t *testing.T){
	"Idle: Arrive": func(t *testing.T) {
		a := newAlone(t, "tree:2", 1, 4)
		a.is(Idle, 0)
		a.want(a.arrives(0), "0 notify 0 gen=1")
		a.is(Waiting, 1)
	},
	"Idle: Arrive, who is gone is agreed": func(t *testing.T) {
		a := newAlone(t, "tree:2", 1, 4)
		a.want(a.hears(0, a.decided(0, Silent, 3)), "")
		a.is(Idle, 0)
		out, err := a.Arrive(a.now, 0, nil)
		if !errors.Is(err, ErrFailed) {
			t.Errorf("Arrive: %v, want ErrFailed", err)
		}
		a.want(sends(out), "")
		a.is(Failed, 1)
		a.failure(Silent, 3)
	},
	"Idle: Arrive, a member has left": func(t *testing.T) {
		a := newAlone(t, "tree:2", 1, 4)
		a.hears(3, a.from(3, Bye, 0, 0))
		if _, ok := a.Deadline(); ok {
			t.Error("it asks, and nobody waits")
		}
		a.want(a.arrives(0), "")
		a.is(Waiting, 1)
		a.want(a.passes(0), "0 report (left: [3])?, 2 report (left: [3])?")
		a.hears(0, a.reports(0, Left, 3))
		a.is(Waiting, 1)
		a.hears(2, a.reports(2, Left, 3))
		a.is(Failed, 1)
		a.failure(Left, 3)
	},
	"Waiting: awaited notify, step done": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.want(a.arrives(0), "")
		a.want(a.notify(3, 1, 0), "0 notify 1 gen=1")
		a.is(Waiting, 1)
	},
	"Waiting: last step done": func(t *testing.T) {
		a := newAlone(t, "concurrent", 1, 3)
		a.arrives(0)
		a.want(a.notify(0, 1, 1), "")
		a.is(Idle, 1)
		if e := a.Ended(); len(e) != 1 || e[0] != 0 {
			t.Errorf("ended are %v", e)
		}
	},
	"Waiting: deadline": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.want(a.passes(firstNack-1), "")
		a.want(a.passes(1), "1 nack 0 gen=1, 2 nack 0 gen=1")
		a.notify(1, 1, 0)
		a.want(a.passes(2*firstNack-1), "")
		a.want(a.passes(1), "2 nack 0 gen=1")
		a.is(Waiting, 1)
	},
	"Waiting: deadline, a member silent too long": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.notify(1, 1, 0)
		a.passes(DefaultPeerTimeout)
		a.is(Waiting, 1)
		out := a.passes(DefaultPeerTimeout / nacksPerTimeout)
		if !strings.HasSuffix(out, "1 report (silent: [2])?") {
			t.Errorf("sends %q", out)
		}
		a.is(Waiting, 1)
	},
	"Waiting: who is gone is agreed": func(t *testing.T) {
		for _, decided := range []bool{false, true} {
			a := newAlone(t, "star", 0, 4)
			a.arrives(0)
			a.hears(1, a.reports(1, Silent, 2))
			last := a.reports(3, Silent, 2)
			if decided {
				last = a.decided(3, Silent, 2)
			}
			a.is(Waiting, 1)
			a.want(a.hears(3, last), "")
			a.is(Failed, 1)
			a.failure(Silent, 2)
			if out := a.passes(0); (out == "1 report (silent: [2]) decided, 3 report (silent: [2]) decided") == decided {
				t.Errorf("it was told the decision: %t; sends %q", decided, out)
			}
		}
	},
	"Waiting: fail": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.want(a.hears(1, a.failed(1, 1, OtherAlgorithm, 2)), "")
		a.is(Failed, 1)
		a.failure(OtherAlgorithm, 2)
	},
	"Waiting: bye, this generation completed": func(t *testing.T) {
		a := newAlone(t, "concurrent", 1, 3)
		a.arrives(0)
		bye := a.from(0, Bye, 0, 0)
		bye.Done = []Done{{0, 1}}
		a.want(a.hears(0, bye), "0 bye ack")
		a.is(Idle, 1)
	},
	"Waiting: bye, this generation not entered": func(t *testing.T) {
		a := newAlone(t, "concurrent", 1, 3)
		a.arrives(0)
		a.want(a.hears(0, a.from(0, Bye, 0, 0)), "0 bye ack")
		a.want(a.passes(0), "2 report (left: [0])?")
		a.is(Waiting, 1)
		a.hears(2, a.reports(2, Left, 0))
		a.failure(Left, 0)
	},
	"any: stale notify or bye": func(t *testing.T) {
		for _, entered := range []bool{false, true} {
			a := newAlone(t, "concurrent", 1, 3)
			if entered {
				a.arrives(0)
			}
			release := a.from(0, Notify, 1, 1)
			release.Known = []uint32{1, 77, 3}
			a.want(a.hears(0, release), "")
			bye := a.from(0, Bye, 0, 0)
			bye.Echo, bye.Done = 77, []Done{{0, 1}}
			var again Message
			_ = Parse(bye.Append(nil), &again)
			out := a.Handle(a.now, 0, &again, nil)
			if a.want(sends(out), "0 bye ack"); out[0].Message.Incarnation != 0 {
				t.Error("it answers as its former self")
			}
			if !a.Fresh() || a.leavers > 0 || a.incarnations[0] != 0 || a.stats.Late != 2 {
				t.Errorf("it has taken notice: %+v, %v", a.stats, a.incarnations)
			}
			if !entered {
				a.arrives(0)
			}
			a.is(Waiting, 1)
			a.want(a.notify(0, 1, 1), "") // to this life
			a.is(Idle, 1)
		}
	},
	"Waiting: another algorithm": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		m := a.from(1, Notify, 1, 0)
		m.Algorithm++
		a.want(a.hears(1, m), "all fail (another algorithm: [0 1]) gen=1, 1 fail (another algorithm: [0 1]) gen=1")
		a.is(Failed, 1)
		a.failure(OtherAlgorithm, 0, 1)
	},
	"Idle: another algorithm": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		m := a.from(1, Nack, 1, 0)
		m.Algorithm++
		a.want(a.hears(1, m), "1 fail (another algorithm: [0 1]) gen=1")
		a.is(Idle, 0)
		if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
			t.Errorf("Arrive: %v, want ErrFailed", err)
		}
		a.failure(OtherAlgorithm, 0, 1)
	},
	"any: nack, notify sent before": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.arrives(0)
		a.notify(3, 1, 0)
		again := "0 notify 1 gen=1"
		ask := a.from(0, Nack, 1, 1)
		a.want(a.hears(0, ask), again) // Waiting, in a later step
		a.notify(0, 1, 2)
		a.is(Idle, 1)
		a.want(a.hears(0, ask), again)
		a.arrives(0)
		a.want(a.hears(0, ask), again) // Waiting in the next generation
		a.hears(3, a.decided(3, Silent, 1))
		a.is(Failed, 2)
		a.want(a.hears(0, ask), again)
	},
	"any: nack, notify not sent yet": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		for _, entered := range []bool{false, true} {
			ask := a.from(0, Nack, 1, 1)
			out := a.Handle(a.now, 0, &ask, nil)
			if len(out) != 1 || out[0].Message.Kind != NotYet || out[0].Message.Entered != entered {
				t.Errorf("answers %q, want later, entered %t", sends(out), entered)
			}
			if !entered {
				a.arrives(0)
			}
		}
	},
	"Idle: nack, who is gone is agreed": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.hears(0, a.decided(0, Silent, 1))
		a.want(a.hears(0, a.from(0, Nack, 1, 1)), "0 report (silent: [1]) decided, 0 fail (silent: [1]) gen=1")
		a.is(Idle, 0)
	},
	"Failed: nack or notify": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.arrives(0)
		a.hears(0, a.decided(0, Silent, 1))
		a.want(a.hears(0, a.from(0, Nack, 1, 1)), "0 report (silent: [1]) decided, 0 fail (silent: [1]) gen=1")
		a.want(a.notify(3, 1, 0), "3 report (silent: [1]) decided, 3 fail (silent: [1]) gen=1")
		a.want(a.hears(0, a.from(0, NotYet, 1, 1)), "")
		a.want(a.hears(0, a.decided(0, Silent, 3)), "")
		if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) || len(out) > 0 {
			t.Errorf("Arrive: %v, sends %q", err, sends(out))
		}
		a.is(Failed, 1)
	},
}

// Each row of the table has a test, and each test a row.
func TestStateTable(t *testing.T) { transcript.Table(t, "engine.go", rows) }

// A second Arrive changes nothing.
func TestArrive_WhileWaiting(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	a.arrives(0)
	if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrWaiting) || len(out) > 0 {
		t.Errorf("Arrive: %v, sends %q, want ErrWaiting", err, sends(out))
	}
	a.is(Waiting, 1)
}

// A member alone leaves the barrier as it enters it.
func TestArrive_Alone(t *testing.T) {
	a := newAlone(t, "star", 0, 1)
	for g := range uint32(3) {
		a.want(a.arrives(0), "")
		a.is(Idle, g+1)
	}
	if _, ok := a.Deadline(); ok {
		t.Error("there is a deadline, and nobody waits")
	}
}

// The time until the first nack follows the time that a step usually takes.
func TestPatience(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	for g := range uint32(50) {
		a.arrives(0)
		a.now = a.now.Add(20 * time.Millisecond) // others are always so late
		a.notify(0, g+1, 1)
		a.is(Idle, g+1)
	}
	a.arrives(0)
	a.want(a.passes(20*time.Millisecond-1), "")
	if out := a.passes(DefaultPeerTimeout / nacksPerTimeout); out == "" {
		t.Error("it never asks")
	}
}
