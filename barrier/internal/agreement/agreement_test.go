package agreement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

const peerTimeout = time.Second

// alone is one member under test; the test plays the others. Rank r's incarnation is r+1.
type alone struct {
	Agreement
	t   *testing.T
	now monotime.Time
}

func newAlone(t *testing.T, rank, size int) *alone {
	return &alone{New(Config{Rank: rank, Size: size, NICs: 2, Incarnation: uint32(rank) + 1,
		PeerTimeout: peerTimeout, FirstQuery: 3 * time.Millisecond}), t, monotime.At(time.Second)}
}

// set makes a set of silent members.
func set(ranks ...int) (gone []Gone) {
	for _, r := range ranks {
		gone = append(gone, Gone{r, Silent})
	}
	return gone
}

// hears handles a report and returns the answers. It is to this member, unless it names another
// incarnation.
func (a *alone) hears(from int, r Report) string {
	if r.Echo == 0 {
		r.Echo = a.cfg.Incarnation
	}
	return sends(a.Handle(a.now, from, uint32(from)+1, &r, nil))
}

// passes lets time pass, and returns the reports sent meanwhile.
func (a *alone) passes(d time.Duration) string {
	var out []Send
	a.now = transcript.Pass(a.now, d, a.Deadline, func(now monotime.Time) { out = a.Advance(now, out) })
	return sends(out)
}

func (a *alone) is(s State, ranks ...int) {
	a.t.Helper()
	var got []int
	for _, g := range a.Gone() {
		got = append(got, g.Rank)
	}
	if a.State() != s || !slices.Equal(got, ranks) {
		a.t.Fatalf("it is in state %d with %v, want %d with %v", a.State(), got, s, ranks)
	}
}

func (a *alone) want(got, want string) {
	a.t.Helper()
	if got != want {
		a.t.Fatalf("sends %q, want %q", got, want)
	}
}

// sends formats reports as "2/1 [3 4]? echo=3": to 2 by network 1.
func sends(out []Send) string {
	var words []string
	for _, s := range out {
		w := fmt.Sprint(s.To)
		if s.NIC > 0 {
			w += fmt.Sprintf("/%d", s.NIC)
		}
		var ranks []int
		for _, g := range s.Report.Gone {
			ranks = append(ranks, g.Rank)
		}
		w += fmt.Sprint(" ", ranks)
		if s.Report.Decided {
			w += "!"
		}
		if s.Report.Query {
			w += "?"
		}
		if s.Report.Echo != 0 {
			w += fmt.Sprintf(" echo=%d", s.Report.Echo)
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

// rows are the tests of the state table in the package's comment.
var rows = map[string]func(t *testing.T){
	"Quiet: Begin: a member is silent": func(t *testing.T) {
		a := newAlone(t, 0, 3)
		a.Begin(a.now)
		a.is(Querying)
		a.want(a.passes(0), "1/1 []?, 2/1 []?")
		a.hears(1, Report{})
		a.want(a.passes(3*time.Millisecond-1), "")
		a.want(a.passes(1), "2 []?")
		a.Begin(a.now) // once more
		a.want(a.passes(6*time.Millisecond-1), "")
		a.want(a.passes(1), "2/1 []?")
	},
	"Quiet: Accuse, or a report of a set": func(t *testing.T) {
		a := newAlone(t, 0, 3)
		a.Accuse(a.now, 2, Silent)
		a.is(Querying, 2)
		a.want(a.passes(0), "1/1 [2]?")
		b := newAlone(t, 0, 3)
		b.want(b.hears(1, Report{Gone: set(2), Echo: 9}), "")
		b.is(Querying, 2)
		b.want(b.passes(0), "1/1 [2]? echo=2")
	},
	"Quiet: query with the empty set": func(t *testing.T) {
		a := newAlone(t, 0, 3)
		a.want(a.hears(1, Report{Query: true}), "1 [] echo=2")
		a.is(Quiet)
		if _, ok := a.Deadline(); ok {
			t.Error("there is a deadline")
		}
	},
	"Querying: all are heard, the set is empty": func(t *testing.T) {
		a := newAlone(t, 0, 3)
		a.Begin(a.now)
		a.hears(1, Report{})
		a.is(Querying)
		a.hears(2, Report{})
		a.is(Quiet)
		a.Begin(a.now) // and again
		a.is(Querying)
		a.hears(1, Report{})
		a.is(Querying)
	},
	"Querying: Accuse, or a report of more": func(t *testing.T) {
		a := newAlone(t, 0, 5)
		a.Accuse(a.now, 3, Silent)
		a.passes(0)
		a.want(a.hears(1, Report{Gone: set(2, 3), Query: true}), "1 [2 3] echo=2")
		a.is(Querying, 2, 3)
		a.want(a.passes(0), "4 [2 3]?")
		a.Accuse(a.now, 4, Silent)
		a.is(Querying, 2, 3, 4)
		a.want(a.passes(0), "1/1 [2 3 4]? echo=2")
	},
	"Querying: a member is silent too long": func(t *testing.T) {
		a := newAlone(t, 0, 4)
		a.Accuse(a.now, 3, Silent)
		for range 40 { // 1 answers, and lacks what 2 has to say
			a.passes(peerTimeout / Queries)
			if a.state == Querying && !a.Has(2) {
				a.hears(1, Report{Gone: set(3)})
			}
		}
		a.is(Querying, 2, 3)
		a.hears(1, Report{Gone: set(2, 3)})
		a.is(Decided, 2, 3)
	},
	"Querying: all others report the same set": func(t *testing.T) {
		a := newAlone(t, 0, 4)
		a.Accuse(a.now, 3, Silent)
		a.hears(1, Report{Gone: set(3)})
		a.hears(1, Report{Gone: set(3)})
		a.is(Querying, 3)
		a.hears(2, Report{Gone: set(3), Echo: 77}) // to a former life
		a.hears(2, Report{})                       // of less
		a.is(Querying, 3)
		a.hears(2, Report{Gone: set(3)})
		a.is(Decided, 3)
		a.want(a.passes(0), "1 [3]! echo=2, 2 [3]! echo=3")
		a.want(a.passes(time.Minute), "")
	},
	"Querying: decided report, from outside of the set": func(t *testing.T) {
		a := newAlone(t, 0, 4)
		a.Accuse(a.now, 3, Silent)
		a.Accuse(a.now, 2, Silent)
		a.hears(2, Report{Gone: set(3), Decided: true}) // from within
		a.is(Querying, 2, 3)
		a.hears(1, Report{Gone: set(3), Decided: true})
		a.is(Decided, 3)
		a.want(a.passes(time.Minute), "")
	},
	"Querying: this member is in the set": func(t *testing.T) {
		for _, decided := range []bool{false, true} {
			a := newAlone(t, 0, 3)
			a.hears(1, Report{Gone: set(0), Decided: decided})
			a.is(Excluded, 0)
			want := "1 [0] echo=2, 2 [0]"
			if decided {
				want = "2 [0]"
			}
			a.want(a.passes(0), want)
			a.want(a.passes(time.Minute), "")
			a.Accuse(a.now, 1, Silent)
			a.Begin(a.now)
			a.is(Excluded, 0)
			a.want(a.hears(1, Report{Query: true}), "1 [0] echo=2")
		}
	},
	"Decided: query": func(t *testing.T) {
		a := newAlone(t, 0, 3)
		a.hears(1, Report{Gone: set(2), Decided: true})
		a.want(a.hears(1, Report{Gone: set(2), Query: true}), "1 [2]! echo=2")
		a.want(a.hears(1, Report{Gone: set(0, 2), Decided: true}), "")
		a.Accuse(a.now, 1, Silent)
		a.Begin(a.now)
		a.is(Decided, 2)
	},
	"Decided: decided report, this member is in it": func(t *testing.T) {
		a := newAlone(t, 0, 4)
		a.hears(1, Report{Gone: set(3), Decided: true})
		outside := func(rank, want int, why Reason) {
			t.Helper()
			if who, reason, is := a.Outside(rank); is != (why != 0) || is && (who != want || reason != why) {
				t.Errorf("of this and %d it is %d (%d), %t; want %d (%d)", rank, who, reason, is, want, why)
			}
		}
		a.hears(1, Report{Gone: set(0, 3)})                             // not decided yet
		a.hears(3, Report{Gone: set(0), Decided: true})                 // from within the set
		a.hears(1, Report{Gone: set(3), Decided: true})                 // the same
		a.hears(2, Report{Gone: []Gone{{2, Left}, {3, Silent}}})        // it is gone itself
		a.hears(2, Report{Gone: []Gone{{2, Unreachable}, {3, Silent}}}) // and that stands
		outside(1, 0, 0)
		outside(2, 2, Left)
		a.hears(1, Report{Gone: []Gone{{0, Unreachable}, {3, Silent}}, Decided: true})
		a.hears(1, Report{Gone: []Gone{{0, Silent}, {3, Silent}}, Decided: true})
		outside(1, 0, Unreachable)
		outside(2, 0, Unreachable)
		a.is(Decided, 3)
		a.want(a.passes(time.Minute), "")
		if b := newAlone(t, 0, 4); b.state == Quiet {
			if _, _, is := b.Outside(1); is {
				t.Error("nothing has happened")
			}
		}
	},
	"any: query of a member in the set": func(t *testing.T) {
		a := newAlone(t, 0, 4)
		a.Accuse(a.now, 3, Silent)
		a.want(a.hears(3, Report{Gone: set(1), Query: true}), "3 [3] echo=4")
		a.want(a.hears(3, Report{Gone: set(0)}), "")
		a.is(Querying, 3)
	},
}

// Each row of the table has a test, and each test a row.
func TestStateTable(t *testing.T) { transcript.Table(t, "agreement.go", rows) }

// Of several reasons the highest stands, and consent is to the reasons, too.
func TestReasons(t *testing.T) {
	a := newAlone(t, 0, 3)
	a.Accuse(a.now, 2, Left)
	a.Accuse(a.now, 2, Silent)
	a.hears(1, Report{Gone: set(2)})
	if a.state != Querying || a.gone[0].Reason != Left || a.version != 1 {
		t.Fatalf("state %d, %v, version %d", a.state, a.gone, a.version)
	}
	a.hears(1, Report{Gone: []Gone{{2, Restarted}}})
	if a.state != Decided || a.gone[0].Reason != Restarted || a.version != 2 {
		t.Errorf("state %d, %v, version %d", a.state, a.gone, a.version)
	}
	for r, want := range map[Reason]bool{0: false, Silent: true, Restarted: true, Restarted + 1: false} {
		if r.Valid() != want {
			t.Errorf("reason %d is valid: %t", r, !want)
		}
	}
}

// A member without the group consents to the version that it answers, until it was heard.
func TestNoGroup(t *testing.T) {
	a := newAlone(t, 0, 3)
	if a.HandleNoGroup(a.now, 1, 0) {
		t.Error("nobody was asked, and it is handled")
	}
	a.Accuse(a.now, 2, Silent)
	if !a.HandleNoGroup(a.now, 1, 0) {
		t.Error("it was not heard before")
	}
	a.is(Querying, 2)
	a.HandleNoGroup(a.now, 1, 1)
	a.is(Decided, 2)
	b := newAlone(t, 0, 3)
	b.Begin(b.now)
	b.HandleNoGroup(b.now, 1, 0)
	b.is(Querying)
	b.HandleNoGroup(b.now, 2, 0)
	b.is(Quiet)
	b.hears(1, Report{})
	b.Accuse(b.now, 2, Silent)
	if b.HandleNoGroup(b.now, 1, 1) {
		t.Error("it was heard before")
	}
	b.is(Querying, 2)
	c := newAlone(t, 0, 3) // it answers again and again: it is there
	c.Accuse(c.now, 2, Silent)
	for range 100 {
		c.passes(peerTimeout / Queries)
		c.HandleNoGroup(c.now, 1, 99)
	}
	c.is(Querying, 2)
}

// A member without the group consents to what contains all that it has consented to, and to the empty
// set, on which nobody decides. Each set that it reports later has all that in it, but for itself and
// who is no member.
func TestConsent(t *testing.T) {
	set := func(ranks ...int) (gone []Gone) {
		for _, rank := range ranks {
			gone = append(gone, Gone{rank, Silent})
		}
		return gone
	}
	var c Consent
	for _, s := range []struct {
		to       []Gone
		consents bool
		now      []Gone
	}{
		{set(), true, set()}, {set(1), true, set(1)}, {set(), true, set(1)}, {set(2), false, set(1)},
		{set(1), true, set(1)}, {set(0, 1), true, set(0, 1)}, {set(1, 2), false, set(0, 1)}, {set(0, 1, 9), true, set(0, 1, 9)},
	} {
		if c.To(2, 1, s.to) != s.consents || !slices.Equal(unionOf(c), s.now) {
			t.Errorf("to %v: want %t, and then %v; it is %v", s.to, s.consents, s.now, c)
		}
	}
	a := newAlone(t, 0, 4)
	a.Uphold(c)
	a.is(Quiet)
	a.Begin(a.now) // the empty set is asked about
	a.is(Querying)
	a.Accuse(a.now, 3, Silent)
	a.is(Querying, 1, 3)
	b := newAlone(t, 0, 4)
	b.Uphold(nil)
	b.Accuse(b.now, 3, Silent)
	b.is(Querying, 3)
}

// What another life of the one that asks has asked counts no more, before the group is made and
// after that.
func TestConsent_ToAFormerLife(t *testing.T) {
	one, two, both := []Gone{{1, Left}}, []Gone{{2, Left}}, []Gone{{1, Left}, {2, Left}}
	var c Consent
	for _, s := range []struct {
		asker       int
		incarnation uint32
		to          []Gone
		consents    bool
	}{
		{0, 1, one, true}, {3, 1, two, false}, {3, 1, both, true}, {0, 2, two, false}, {3, 2, nil, true}, {0, 2, two, true},
		{3, 2, one, false},
	} {
		if got := c.To(s.asker, s.incarnation, s.to); got != s.consents {
			t.Errorf("%+v: %t; it is %v", s, got, c)
		}
	}
	for _, hears := range []struct {
		rank        int
		incarnation uint32
		then        []int
	}{{0, 1, []int{1, 2}}, {0, 2, []int{1, 2}}, {3, 7, []int{1, 2}}, {3, 9, []int{1}}} {
		a := newAlone(t, 0, 4)
		a.Uphold(Consent{{3, 7, two}})
		a.Hear(hears.rank, hears.incarnation)
		a.Accuse(a.now, 1, Silent)
		a.is(Querying, hears.then...)
	}
}

// Two members take each other for gone, or one of them does, while a third one has not made its group:
// what it answers to both does not let it decide otherwise than a fourth one, or than those.
func TestConsent_ToOneOfTwo(t *testing.T) {
	for _, order := range [][2]int{{0, 3}, {3, 0}} {
		w := space{size: 4, late: 2}.start()
		w.absent, w.consent = []bool{false, true, true, false}, make([]Consent, 4)
		for _, rank := range order { // asks those that are late, and decides if both consent
			w.touch(rank).Accuse(modelNow, 3-rank, Silent)
			w.advance(rank)
			for len(w.flying) > 0 {
				f := w.flying[0]
				w.flying = w.flying[1:]
				if f.from+f.to != 3 || f.from == 1 || f.from == 2 { // the two are cut off from each other
					w.arrive(f)
				}
			}
		}
		first, second := w.members[order[0]], w.members[order[1]]
		if first.State() != Decided || second.State() != Querying {
			t.Fatalf("in states %d and %d, want the first to have decided and the second to ask", first.State(), second.State())
		}
		w.touch(order[0]).announce = true
		if wrong := w.settles(); wrong != "" {
			t.Error(wrong)
		}
	}
}

// If more members are gone than a report names, the others decide alone.
func TestMaxGone(t *testing.T) {
	const most = 400 // as docs/wire-format.md says
	a := newAlone(t, 0, most+3)
	for rank := range most {
		a.Accuse(a.now, rank+1, Left)
	}
	if a.state != Querying {
		t.Fatalf("state %d with as many as fit", a.state)
	}
	a.Accuse(a.now, most+1, Left)
	if a.state != Decided || len(a.gone) != most+1 {
		t.Errorf("state %d with %d", a.state, len(a.gone))
	}
}

// Where more are gone than a report names, others may have decided on other sets: who decides on as many
// knows that, and who hears of another set.
func TestMayDiffer(t *testing.T) {
	for _, c := range []struct {
		name   string
		named  int // by a report
		hears  []Report
		differ bool
	}{
		{"the same set", 3, []Report{{Gone: set(3, 4), Decided: true}}, false},
		{"a set that is not decided", 3, []Report{{Gone: set(3)}}, false},
		{"another set", 3, []Report{{Gone: set(3), Decided: true}}, true},
		{"another set, and the same", 3, []Report{{Gone: set(3), Decided: true}, {Gone: set(3, 4), Decided: true}}, true},
		{"a report names no more", 2, nil, true},
	} {
		a := newAlone(t, 0, 5)
		a.cfg.MaxGone = c.named
		if a.MayDiffer() {
			t.Errorf("%s: nothing is decided", c.name)
		}
		a.hears(1, Report{Gone: set(3, 4), Decided: true})
		a.is(Decided, 3, 4)
		for _, r := range c.hears {
			a.hears(2, r)
		}
		if got := a.MayDiffer(); got != c.differ {
			t.Errorf("%s: others may differ: %v, want %v", c.name, got, c.differ)
		}
	}
}

// Announce repeats the decision until all have confirmed it, by the networks in turn.
func TestAnnounce(t *testing.T) {
	a := newAlone(t, 0, 4)
	a.want(sends(a.Announce(nil)), "")
	a.hears(1, Report{Gone: set(3), Decided: true})
	a.want(sends(a.Announce(nil)), "2 [3]!?")
	a.want(sends(a.Announce(nil)), "2/1 [3]!?")
	a.want(sends(a.Announce(nil)), "2 [3]!?")
	if a.KnowsDecision(2) || !a.KnowsDecision(1) {
		t.Error("1 alone has decided")
	}
	a.hears(2, Report{Gone: set(3), Decided: true})
	a.want(sends(a.Announce(nil)), "")
	if b := newAlone(t, 0, 2); b.KnowsDecision(1) || b.Untold() != nil {
		t.Error("nothing has happened")
	}
	a.want(sends([]Send{a.ReportTo(1, 1, false)}), "1/1 [3]! echo=2")
}

// A member alone decides at once.
func TestAlone(t *testing.T) {
	a := newAlone(t, 1, 2)
	a.Accuse(a.now, 0, Silent)
	a.is(Decided, 0)
	a.want(a.passes(0), "")
}

// Queries come after twice as long each time, up to a twentieth of the timeout; if the set grows,
// from the beginning.
func TestIntervals(t *testing.T) {
	a := newAlone(t, 0, 4)
	a.Accuse(a.now, 3, Silent)
	begun := a.now
	var at []time.Duration
	next := func() {
		deadline, _ := a.Deadline()
		a.now = deadline
		at = append(at, a.now.Sub(begun)/time.Millisecond)
		if out := a.Advance(a.now.Add(-1), nil); out != nil {
			t.Fatal("too early")
		}
		a.Advance(a.now, nil)
	}
	for range 8 {
		next()
	}
	a.hears(1, Report{Gone: set(2)})
	next()
	next()
	if want := []time.Duration{0, 3, 9, 21, 45, 93, 143, 193, 193, 196}; !slices.Equal(at, want) {
		t.Errorf("queries at %v ms, want %v", at, want)
	}
}

// Doubtful members are those that are silent for half of the timeout; one that answers by another
// path is spared for two timeouts more, and then unreachable.
func TestDoubtful(t *testing.T) {
	a := newAlone(t, 0, 4)
	a.Excuse(1) // nobody was asked
	a.Accuse(a.now, 3, Silent)
	begun := a.now
	if d := a.Doubtful(nil); d != nil {
		t.Errorf("doubtful are %v at once", d)
	}
	doubtful := time.Duration(0)
	for !a.Has(2) {
		a.passes(time.Millisecond)
		a.hears(1, Report{Gone: set(3)})
		if d := a.Doubtful(nil); len(d) > 0 {
			if !slices.Equal(d, []int{2}) {
				t.Fatalf("doubtful are %v", d)
			}
			doubtful = max(doubtful, 1)
			if doubtful == 1 {
				doubtful = a.now.Sub(begun)
			}
			a.Excuse(2)
		}
		if a.now.Sub(begun) > time.Minute {
			t.Fatal("it is spared for ever")
		}
	}
	took := a.now.Sub(begun)
	if doubtful < peerTimeout/2 || doubtful > peerTimeout*6/10 {
		t.Errorf("doubtful after %v", doubtful)
	}
	if took < 3*peerTimeout || took > 4*peerTimeout || a.gone[0].Reason != Unreachable {
		t.Errorf("gone after %v: %v", took, a.gone)
	}
	if d := a.Doubtful(nil); d != nil {
		t.Errorf("doubtful are %v, and 2 is gone", d)
	}
}
