package engine

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// rows are the tests of the state table in the package's comment, by its first two columns.
var rows = map[string]func(t *testing.T){
	"Idle: Arrive": func(t *testing.T) {
		a := newAlone(t, "tree:2", 1, 4)
		a.is(Idle, 0)
		a.want(a.arrives(0), "0 tell 0 gen=1")
		a.is(Waiting, 1)
	},
	"Idle: Arrive, a member is known gone": func(t *testing.T) {
		a := newAlone(t, "tree:2", 1, 4)
		a.want(a.hears(0, a.failed(0, 1, Silent, 3)), "")
		a.is(Idle, 0)
		out, err := a.Arrive(a.now, 0, nil)
		if !errors.Is(err, ErrFailed) {
			t.Errorf("Arrive: %v, want ErrFailed", err)
		}
		a.want(sends(out), "")
		a.is(Failed, 1)
		a.failure(Silent, 3)
	},
	"Waiting: an awaited message, step done": func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.want(a.arrives(0), "")
		a.want(a.tells(3, 1, 0), "0 tell 1 gen=1")
		a.is(Waiting, 1)
	},
	"Waiting: last step done": func(t *testing.T) {
		a := newAlone(t, "concurrent", 1, 3)
		a.arrives(0)
		a.want(a.tells(0, 1, 1), "")
		a.is(Idle, 1)
		if e := a.Ended(); len(e) != 1 || e[0] != 0 {
			t.Errorf("ended are %v", e)
		}
	},
	"Waiting: deadline": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.want(a.passes(firstAsk-1), "")
		a.want(a.passes(1), "1 missing? 0 gen=1, 2 missing? 0 gen=1")
		a.tells(1, 1, 0)
		a.want(a.passes(2*firstAsk-1), "")
		a.want(a.passes(1), "2 missing? 0 gen=1")
		a.is(Waiting, 1)
	},
	"Waiting: deadline, somebody silent > limit": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.tells(1, 1, 0)
		a.passes(DefaultLimit)
		a.is(Waiting, 1)
		out := a.passes(DefaultLimit / asksPerLimit)
		if !strings.HasSuffix(out, "all failed (silent: [2]) gen=1") {
			t.Errorf("sends %q", out)
		}
		a.is(Failed, 1)
		a.failure(Silent, 2)
	},
	`Waiting: "later", in mutual wait > limit`: TestMutualWait,
	`Waiting: "failed"`: func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.want(a.hears(1, a.failed(1, 1, Silent, 2)), "")
		a.is(Failed, 1)
		a.failure(Silent, 2)
	},
	`Waiting: "bye", with what it has completed`: func(t *testing.T) {
		has := newAlone(t, "concurrent", 1, 3)
		has.arrives(0)
		bye := has.from(0, Bye, 0, 0)
		bye.Done = []Done{{0, 1}}
		has.want(has.hears(0, bye), "0 bye, too")
		has.is(Idle, 1)

		not := newAlone(t, "concurrent", 1, 3)
		not.arrives(0)
		not.want(not.hears(0, not.from(0, Bye, 0, 0)), "0 bye, too, all failed (left: [0]) gen=1")
		not.is(Failed, 1)
		not.failure(Left, 0)
	},
	"Waiting: a message of another algorithm": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		m := a.from(1, Tell, 1, 0)
		m.Algorithm++
		a.want(a.hears(1, m), "all failed (another algorithm: [0 1]) gen=1, 1 failed (another algorithm: [0 1]) gen=1")
		a.is(Failed, 1)
		a.failure(Algorithms, 0, 1)
	},
	"Idle: a message of another algorithm": func(t *testing.T) {
		a := newAlone(t, "star", 0, 3)
		m := a.from(1, Ask, 1, 0)
		m.Algorithm++
		a.want(a.hears(1, m), "1 failed (another algorithm: [0 1]) gen=1")
		a.is(Idle, 0)
		if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
			t.Errorf("Arrive: %v, want ErrFailed", err)
		}
		a.failure(Algorithms, 0, 1)
	},
	`any: "missing?", told before`: func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.arrives(0)
		a.tells(3, 1, 0)
		again := "0 tell 1 gen=1"
		ask := a.from(0, Ask, 1, 1)
		a.want(a.hears(0, ask), again) // Waiting, in a later step
		a.tells(0, 1, 2)
		a.is(Idle, 1)
		a.want(a.hears(0, ask), again)
		a.arrives(0)
		a.want(a.hears(0, ask), again) // Waiting in the next generation
		a.hears(3, a.failed(3, 2, Silent, 1))
		a.is(Failed, 2)
		a.want(a.hears(0, ask), again)
	},
	`any: "missing?", not told yet`: func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		for _, entered := range []bool{false, true} {
			ask := a.from(0, Ask, 1, 1)
			out := a.Handle(a.now, 0, &ask, Elsewhere{}, nil)
			if len(out) != 1 || out[0].Message.Kind != Later || out[0].Message.Entered != entered {
				t.Errorf("answers %q, want later, entered %t", sends(out), entered)
			}
			if !entered {
				a.arrives(0)
			}
		}
	},
	`Idle: "missing?", a member is known gone`: func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.hears(0, a.failed(0, 1, Silent, 1))
		a.want(a.hears(0, a.from(0, Ask, 1, 1)), "0 failed (silent: [1]) gen=1")
		a.is(Idle, 0)
	},
	`Failed: "missing?", a message`: func(t *testing.T) {
		a := newAlone(t, "tree:2", 2, 4)
		a.arrives(0)
		a.hears(0, a.failed(0, 1, Silent, 1))
		a.want(a.hears(0, a.from(0, Ask, 1, 1)), "0 failed (silent: [1]) gen=1")
		a.want(a.tells(3, 1, 0), "3 failed (silent: [1]) gen=1")
		a.want(a.hears(0, a.from(0, Later, 1, 1)), "")
		a.want(a.hears(0, a.failed(0, 1, Silent, 3)), "")
		if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) || len(out) > 0 {
			t.Errorf("Arrive: %v, sends %q", err, sends(out))
		}
		a.is(Failed, 1)
	},
}

var row = regexp.MustCompile(`^//\t(Idle|Waiting|Failed|any) +(.*?) +(Idle|Waiting|Failed|same) +\S`)

// Each row of the table, and no other.
func TestStateTable(t *testing.T) {
	source, err := os.ReadFile("engine.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(source)) {
		words := row.FindStringSubmatch(line)
		if words == nil {
			continue
		}
		found++
		name := words[1] + ": " + words[2]
		if test := rows[name]; test != nil {
			t.Run(name, test)
		} else {
			t.Errorf("no test of the row %q", name)
		}
	}
	if found != len(rows) {
		t.Errorf("%d tests, for a table of %d rows", len(rows), found)
	}
}

// A second Arrive changes nothing.
func TestArrive_WhileWaiting(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	a.arrives(0)
	if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrWaiting) || len(out) > 0 {
		t.Errorf("Arrive: %v, sends %q, want ErrWaiting", err, sends(out))
	}
	a.is(Waiting, 1)
}

// Nobody else: the barrier is left as it is entered.
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

// How long a step may take before it is asked for follows how long it usually takes.
func TestPatience(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	for g := range uint32(50) {
		a.arrives(0)
		a.now = a.now.Add(20 * time.Millisecond) // others are always so late
		a.tells(0, g+1, 1)
		a.is(Idle, g+1)
	}
	a.arrives(0)
	a.want(a.passes(20*time.Millisecond-1), "")
	if out := a.passes(DefaultLimit / asksPerLimit); out == "" {
		t.Error("it never asks")
	}
}
