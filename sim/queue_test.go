package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/prng"
)

// naive is a queue that sorts: the order of events that Queue must have.
type naive struct {
	now    int64
	events []naiveEvent
}

type naiveEvent struct {
	at int64
	id int
}

func (n *naive) add(at int64, id int) {
	n.events = append(n.events, naiveEvent{at, id})
	slices.SortStableFunc(n.events, func(a, b naiveEvent) int { return int(max(-1, min(1, a.at-b.at))) })
}

// run returns the events not later than until, at most so many, in their order.
func (n *naive) run(until int64, most int) (ids []int) {
	for len(n.events) > 0 && n.events[0].at <= until && len(ids) < most {
		n.now = n.events[0].at
		ids = append(ids, n.events[0].id)
		n.events = n.events[1:]
	}
	return ids
}

func TestQueue_AgreesWithNaive(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		var q Queue
		var twin naive
		var ran []int
		var schedule func(depth int)
		next := 0
		schedule = func(depth int) { // each event may schedule others: both sides must see the same
			id, at := next, int64(q.Now().Since())+random.Int64N(1<<random.IntN(40))*random.Int64N(2)
			next++
			twin.add(at, id)
			q.At(monotime.At(time.Duration(at)), func() {
				ran = append(ran, id)
				if want := twin.run(at, 1); len(want) != 1 || want[0] != id {
					t.Fatalf("seed %d: event %d runs, want %v", seed, id, want)
				}
				if depth < 3 && random.IntN(4) == 0 {
					schedule(depth + 1)
				}
			})
		}
		for op := range 5000 {
			switch random.IntN(8) {
			case 0:
				until := int64(q.Now().Since()) + random.Int64N(1<<random.IntN(30))
				before := len(ran)
				if n := q.Run(monotime.At(time.Duration(until))); n != len(ran)-before || int64(q.Now().Since()) != until {
					t.Fatalf("seed %d, operation %d: Run(%d) = %d after %d events, now %v", seed, op, until, n, len(ran)-before, q.Now())
				}
				if left := twin.run(until, 1); left != nil {
					t.Fatalf("seed %d, operation %d: Run(%d) left event %v", seed, op, until, left)
				}
			case 1, 2, 3:
				before := len(ran)
				if some := len(twin.events) > 0; q.Step() != some || some && (len(ran) != before+1 || int64(q.Now().Since()) != twin.now) {
					t.Fatalf("seed %d, operation %d: Step ran %d events, now %v, want %d", seed, op, len(ran)-before, q.Now(), twin.now)
				}
			default:
				schedule(0)
			}
			if q.Len() != len(twin.events) {
				t.Fatalf("seed %d, operation %d: Len %d, want %d", seed, op, q.Len(), len(twin.events))
			}
		}
	}
}

func TestQueue_EventsOfOneInstantKeepTheirOrder(t *testing.T) {
	var q Queue
	var ran []int
	const n = 300 // several blocks of the timing wheel
	note := func(i int) func() { return func() { ran = append(ran, i) } }
	for i := range n { // half go down through the rows, half come when the instant is near, the last during it
		if i == n/2 {
			q.Run(monotime.At(time.Millisecond - 10))
		}
		q.At(monotime.At(time.Millisecond), note(i))
	}
	q.At(monotime.At(time.Millisecond), func() { q.After(0, note(n+1)) })
	q.At(monotime.At(time.Millisecond), note(n))
	q.Run(monotime.At(time.Millisecond))
	if len(ran) != n+2 || !slices.IsSorted(ran) {
		t.Errorf("order %v", ran)
	}
}

// Run looks at an event that is too late for it; an earlier one may come after that.
func TestQueue_RunThenAnEventBeforeThePendingOne(t *testing.T) {
	var q Queue
	var ran []string
	q.At(monotime.At(time.Hour), func() { ran = append(ran, "an hour") })
	if n := q.Run(monotime.At(time.Second)); n != 0 || q.Now() != monotime.At(time.Second) || q.Len() != 1 {
		t.Fatalf("Run = %d, now %v, %d wait", n, q.Now(), q.Len())
	}
	q.After(1, func() { ran = append(ran, "soon") })
	q.Run(monotime.At(time.Minute))
	q.Run(monotime.At(time.Second)) // in the past: nothing
	if q.Now() != monotime.At(time.Minute) {
		t.Errorf("now %v", q.Now())
	}
	for q.Step() {
	}
	if !slices.Equal(ran, []string{"soon", "an hour"}) {
		t.Errorf("order %v", ran)
	}
}

func TestQueue_EveryDigit(t *testing.T) {
	var q Queue
	var ran []monotime.Time
	for shift := 62; shift >= 0; shift-- {
		q.At(monotime.At(1<<shift), func() { ran = append(ran, q.Now()) })
	}
	q.After(math.MaxInt64, func() { ran = append(ran, q.Now()) })
	q.Run(monotime.At(math.MaxInt64))
	if len(ran) != 64 || !slices.IsSortedFunc(ran, monotime.Time.Compare) || ran[0] != monotime.At(1) || ran[63] != monotime.At(math.MaxInt64) {
		t.Errorf("instants %v", ran)
	}
}

func TestQueue_PastPanics(t *testing.T) {
	var q Queue
	q.Run(monotime.At(time.Second))
	q.After(0, func() {})
	defer func() {
		if got := recover(); got != "sim: an event for 999.999999ms, but it is 1s already (1 events wait)" {
			t.Errorf("panic %v", got)
		}
	}()
	q.After(-1, func() {})
}

func TestQueue_Empty(t *testing.T) {
	var q Queue
	if q.Step() || q.Len() != 0 || !q.Now().IsZero() || q.Run(monotime.At(5)) != 0 || q.Now() != monotime.At(5) {
		t.Errorf("an empty queue at %v", q.Now())
	}
}

func TestQueue_AllocatesNothing(t *testing.T) {
	var q Queue
	random := prng.Source(1)
	var again func()
	again = func() { q.After(random.UpTo(time.Millisecond), again) }
	for range 1000 {
		again()
	}
	q.Run(q.Now().Add(time.Second))
	if n := testing.AllocsPerRun(10, func() { q.Run(q.Now().Add(time.Millisecond)) }); n > 1 {
		t.Errorf("%v allocs in some 2,000 events, want 0", n)
	}
}
