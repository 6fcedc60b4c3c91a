package explore

import (
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// counter is a world of two numbers; each move adds one to either, up to 3.
type counter struct {
	n      [2]int
	broken [2]int // where a promise breaks
}

func (c *counter) Moves() (all []Move) {
	for i, n := range c.n {
		if n < 3 {
			all = append(all, Move{"add", i, 0})
		}
	}
	return all
}

func (c *counter) Do(m Move) { c.n[m.From]++ }

func (c *counter) Wrong() string {
	if c.n == c.broken {
		return "broken"
	}
	return ""
}

func (c *counter) End() string {
	if c.n != [2]int{3, 3} {
		return "not the end"
	}
	return ""
}

func (c *counter) State() (any, monotime.Time) { return c.n, monotime.Time{} }

func TestAll(t *testing.T) {
	r := All(func() World { return &counter{broken: [2]int{9, 9}} }, 100)
	if r.States != 16 || r.Ends != 1 || r.Cut || r.Wrong != "" {
		t.Errorf("%+v, want all 4 x 4 states, and one end", r)
	}
	r = All(func() World { return &counter{broken: [2]int{1, 2}} }, 100)
	if r.Wrong != "broken" || len(r.History) != 3 {
		t.Errorf("%+v, want a history of 3 that breaks the promise", r)
	}
	if r = All(func() World { return &counter{broken: [2]int{9, 9}} }, 10); !r.Cut || r.States != 10 {
		t.Errorf("%+v, want 10 states, cut short", r)
	}
}

// Behind a broken promise no other history is tried.
func TestAll_EndsAtOnce(t *testing.T) {
	worlds, until := 0, 0
	start := func() World {
		worlds++
		return &told{counter{broken: [2]int{1, 3}}, func() { until = worlds }}
	}
	if r := All(start, 100); r.Wrong == "" || until == 0 {
		t.Fatalf("%+v, want a broken promise", r)
	}
	if worlds > until {
		t.Errorf("%d more worlds were made behind the one that broke its promise", worlds-until)
	}
}

// told is a counter that tells of its broken promise; each of its moves has another one beside it
// that leads to the same.
type told struct {
	counter
	broke func()
}

func (c *told) Moves() []Move { return slices.Repeat(c.counter.Moves(), 2) }

func (c *told) Wrong() string {
	wrong := c.counter.Wrong()
	if wrong != "" {
		c.broke()
	}
	return wrong
}

func TestDigest(t *testing.T) {
	type core struct {
		deadline monotime.Time
		name     string
		list     []byte
		next     *core
		stats    int
		told     int `explore:"-"`
	}
	seed := maphash.MakeSeed()
	a := core{deadline: monotime.At(5 * time.Second), name: "a", list: []byte{1}, next: &core{name: "b"}, stats: 1, told: 1}
	later := a
	later.deadline, later.stats, later.told = monotime.At(6*time.Second), 2, 2
	was, is := monotime.At(time.Second), monotime.At(2*time.Second)
	if Digest(seed, &a, was) != Digest(seed, &later, is) {
		t.Error("the same state a second later has another digest")
	}
	for name, change := range map[string]func(c *core){
		"deadline": func(c *core) { c.deadline = monotime.At(time.Minute) },
		"list":     func(c *core) { c.list = []byte{2} },
		"next":     func(c *core) { c.next = &core{name: "c"} },
		"name":     func(c *core) { c.name = "x" },
	} {
		b := a
		if change(&b); Digest(seed, &a, was) == Digest(seed, &b, was) {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

// A deadline that is due is another state than none, and so is a core in another place.
func TestDigest_NoneAndOne(t *testing.T) {
	type core struct {
		deadline    monotime.Time
		left, right *int
	}
	seed, now, one := maphash.MakeSeed(), monotime.At(time.Second), 1
	states := []core{{}, {deadline: now}, {left: &one}, {right: &one}}
	for i := range states {
		for j := range states[:i] {
			if Digest(seed, &states[i], now) == Digest(seed, &states[j], now) {
				t.Errorf("%+v and %+v have the same digest", states[j], states[i])
			}
		}
	}
}
