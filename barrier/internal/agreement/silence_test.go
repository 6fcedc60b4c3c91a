package agreement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// queried returns a silence of some queries, so far apart.
func queried(count int, apart time.Duration) (s Silence, last monotime.Time) {
	last = monotime.At(time.Minute)
	for i := range count {
		if i > 0 {
			last = last.Add(apart)
		}
		s.Query(last, peerTimeout)
	}
	return s, last
}

// A member is silent once more than half of the queries went out over the timeout, to the
// nanosecond.
func TestSilence_Over(t *testing.T) {
	const step = 2 * peerTimeout / Queries // the most that counts between two queries
	for _, c := range []struct {
		name  string
		count int
		apart time.Duration
		over  bool
	}{
		{"eleven queries over the timeout", 11, step, true},
		{"a nanosecond less each", 11, step - 1, false},
		{"further apart: this node stood still", 11, step + time.Millisecond, true},
		{"further apart, but fewer", 10, peerTimeout - 1, false},
		{"a timeout apart: each is the first", 30, peerTimeout, false},
		{"ten", 10, step, false},
		{"more, over less", 20, step / 2, false},
		{"21", 21, step / 2, true},
		{"none", 0, 0, false},
	} {
		s, last := queried(c.count, c.apart)
		if why, over := s.Over(peerTimeout); over != c.over || over && why != Silent {
			t.Errorf("%s: over is %t (%d), want %t", c.name, over, why, c.over)
		}
		s.Heard()
		if _, over := s.Over(peerTimeout); over || s.asks != 0 || s.Doubtful(peerTimeout) {
			t.Errorf("%s: it was heard, and is over", c.name)
		}
		s.Query(last.Add(step), peerTimeout)
		if s.asks != 1 || s.silent != 0 || s.excused != 0 {
			t.Errorf("%s: after it was heard, one query counts %d, %v", c.name, s.asks, s.silent)
		}
	}
}

// It is doubtful from half of the timeout on.
func TestSilence_Doubtful(t *testing.T) {
	const step = peerTimeout / Queries
	for count, want := range map[int]bool{1: false, 10: false, 11: true, 12: true} {
		if s, _ := queried(count, step); s.Doubtful(peerTimeout) != want {
			t.Errorf("%d queries: doubtful is %t", count, !want)
		}
	}
	if s, _ := queried(11, step-1); s.Doubtful(peerTimeout) {
		t.Error("doubtful before half of the timeout")
	}
}

// Excuses move the silence, two timeouts of it, and make it the member's route.
func TestSilence_Excuse(t *testing.T) {
	const step = 2 * peerTimeout / Queries
	s, last := queried(11, step)
	excuses := 0
	for ; excuses < 10; excuses++ {
		before := s
		if s.Excuse(peerTimeout); s == before {
			break
		}
		if _, over := s.Over(peerTimeout); over || s.silent != 0 {
			t.Fatalf("excused, and over after %v", s.silent)
		}
		for range 10 {
			last = last.Add(step)
			if _, over := s.Over(peerTimeout); over {
				t.Fatal("over before the timeout")
			}
			s.Query(last, peerTimeout)
		}
	}
	if why, over := s.Over(peerTimeout); excuses != maxExcuse || !over || why != Unreachable {
		t.Errorf("%d excuses, then over is %t (%d)", excuses, over, why)
	}
	var none Silence
	if none.Excuse(peerTimeout); none != (Silence{}) {
		t.Error("nobody asked, and it is excused")
	}
	heard, _ := queried(11, step)
	heard.Heard()
	if heard.Excuse(peerTimeout); heard.excused != 0 {
		t.Error("it was heard, and is excused")
	}
}

// With one network, or none said, all goes by it.
func TestNICs_One(t *testing.T) {
	for nics := range 2 {
		a := newAlone(t, 0, 3)
		a.cfg.NICs = nics
		a.Accuse(a.now, 2, Silent)
		a.want(a.passes(4*time.Millisecond), "1 [2]?, 1 [2]?")
	}
}

// A timeout shorter than timers are late by runs out, too.
func TestSilence_ShortTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		var s Silence
		now := monotime.At(time.Minute)
		for range 11 {
			now = now.Add(timeout + time.Millisecond)
			s.Query(now, timeout)
		}
		if why, over := s.Over(timeout); !over || why != Silent {
			t.Errorf("timeout %v: eleven queries without an answer, and over is %t (%d)", timeout, over, why)
		}
	}
}

// A query that comes 100 ms after the last one, or a timeout if that is longer, is the first again.
func TestSilence_Begins(t *testing.T) {
	for _, c := range []struct{ timeout, after time.Duration }{
		{time.Millisecond, 100 * time.Millisecond}, {100 * time.Millisecond, 100 * time.Millisecond},
		{101 * time.Millisecond, 101 * time.Millisecond}, {time.Second, time.Second},
	} {
		for late, want := range map[time.Duration]int{c.after - 1: 3, c.after: 1} {
			var s Silence
			now := monotime.At(time.Minute)
			s.Query(now, c.timeout)
			s.Query(now.Add(1), c.timeout)
			s.Excuse(c.timeout)
			if s.Query(now.Add(1+late), c.timeout); s.asks != want || (s.silent+s.excused == 0) != (want == 1) {
				t.Errorf("timeout %v, %v after the last query: %d queries, silent for %v and %v",
					c.timeout, late, s.asks, s.silent, s.excused)
			}
		}
	}
}

// Time in which this node stood still does not count: the answers may have come, and are not read yet.
func TestSilence_ThisNodeStoodStill(t *testing.T) {
	const step = peerTimeout / Queries
	s, last := queried(14, step) // 0.65 of the timeout
	s.Query(last.Add(peerTimeout*9/10), peerTimeout)
	if _, over := s.Over(peerTimeout); over || s.silent != 13*step+2*step {
		t.Errorf("after %v of silence, and a pause: over is %t, %v counted", 13*step, over, s.silent)
	}
}

// A member that lives is not silent, though it reports nothing. Where nobody was asked that changes
// nothing.
func TestAlive(t *testing.T) {
	a := newAlone(t, 0, 3)
	a.Alive(1)
	a.Accuse(a.now, 2, Left)
	for range 3 * Queries {
		a.passes(peerTimeout / Queries)
		a.Alive(1)
	}
	a.is(Querying, 2)
	a.passes(2 * peerTimeout)
	a.is(Decided, 1, 2)
}

// The query that would be one too many for a member is not sent.
func TestQuery_OfASilentMember(t *testing.T) {
	a := newAlone(t, 0, 4)
	a.Accuse(a.now, 3, Left)
	for range 10 * Queries {
		a.hears(1, Report{Gone: a.Gone()})
		at, _ := a.Deadline()
		a.now = at
		out := sends(a.Advance(a.now, nil))
		switch asked := strings.Contains(out, "2 ["); {
		case !a.Has(2) && !asked && !strings.Contains(out, "2/1 ["):
			t.Fatalf("it was not asked: %q", out)
		case a.Has(2):
			if asked || strings.Contains(out, "2/1 [") {
				t.Errorf("it is silent for too long, and was asked once more: %q", out)
			}
			return
		}
	}
	t.Error("it is never silent for too long")
}

// Members that are silent for as long are found gone together: no report names one of them alone.
func TestQuery_OfTwoSilentMembers(t *testing.T) {
	a := newAlone(t, 0, 5)
	a.Begin(a.now)
	for range 10 * Queries {
		a.hears(2, Report{})
		a.hears(4, Report{})
		out := a.passes(peerTimeout / Queries)
		if strings.Contains(out, "[1]") || strings.Contains(out, "[3]") {
			t.Fatalf("one of them alone is named: %q", out)
		}
		if a.Has(1) {
			a.is(Querying, 1, 3)
			return
		}
	}
	t.Error("they are never silent for too long")
}

// A member that is silent again, after all were heard, is asked at once, and as often as the first
// time.
func TestBegin_Again(t *testing.T) {
	a := newAlone(t, 0, 3)
	for range 3 {
		a.Begin(a.now)
		a.hears(1, Report{})
		var at []time.Duration
		for begun, k := a.now, 0; k < 5; k++ {
			next, ok := a.Deadline()
			if !ok {
				t.Fatal("nobody is asked")
			}
			a.now = next
			a.Advance(a.now, nil)
			at = append(at, a.now.Sub(begun)/time.Millisecond)
		}
		if want := []time.Duration{0, 3, 9, 21, 45}; !slices.Equal(at, want) {
			t.Errorf("queries at %v ms, want %v", at, want)
		}
		a.hears(2, Report{})
		a.is(Quiet)
		a.now = a.now.Add(time.Millisecond)
	}
}
