package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// generators are all algorithms, with parameters that differ in kind.
func generators() []Algorithm {
	all := []Algorithm{Shuffle(), Concurrent(), Star(), Offload(), Chassis(), ChassisRepeated()}
	for _, k := range []int{2, 3, 4, 7, 16} {
		all = append(all, Tree(k), TreeTree(k), Heap(k))
	}
	flat := []Algorithm{Shuffle(), Tree(2), TreeTree(3), Concurrent(), Star()}
	for _, inner := range flat {
		for _, outer := range flat {
			all = append(all, Hierarchical(inner, outer, 3))
		}
	}
	for _, a := range []Algorithm{Tree(3), Concurrent(), Shuffle(), TreeTree(2)} {
		all = append(all, Stripe(a, 2), Redundant(a, 3))
	}
	return append(all,
		HierarchicalRepeated(Star(), Tree(2), 3),
		HierarchicalRepeated(Shuffle(), Shuffle(), 4),
		Hierarchical(Star(), Hierarchical(Star(), Tree(2), 3), 3),
		Hierarchical(Hierarchical(Star(), TreeTree(2), 2), Hierarchical(Shuffle(), Shuffle(), 3), 4),
		Redundant(Hierarchical(Tree(2), Concurrent(), 5), 2),
	)
}

func TestSchedule_EveryExitFollowsEveryEntry(t *testing.T) {
	most := 300
	if testing.Short() {
		most = 65
	}
	for _, a := range generators() {
		t.Run(a.String(), func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= most; size++ {
				if err := a.Check(size); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSchedule_LargeSizes(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, a := range generators() {
		size := 301 + rng.IntN(4700)
		if testing.Short() {
			size = 101 + rng.IntN(100)
		}
		if err := a.Check(size); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The checker finds each fault.
func TestCheck_FindsWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name  string
		wreck func(steps [][]Step)
		want  string
	}{
		{"a message is not sent", func(s [][]Step) { s[3][0].Notify = nil }, "rank 3's message 0 to rank 2 is awaited, and never sent"},
		{"a message is not awaited", func(s [][]Step) { s[2][0].Await = nil }, "no rank awaits rank 3's message 0 to rank 2"},
		{"a message goes to another rank", func(s [][]Step) { s[3][0].Notify[0].To = 1 }, "no rank awaits rank 3's message 0 to rank 1"},
		{"a message has another label", func(s [][]Step) { s[3][0].Notify[0].Label = 9 }, "no rank awaits rank 3's message 9"},
		{"a message is sent twice", func(s [][]Step) { s[3][0].Notify = append(s[3][0].Notify, s[3][0].Notify[0]) }, "is sent twice"},
		{"a message is sent twice over one of several networks", func(s [][]Step) {
			s[3][0].Notify = []Send{{2, 0, 0}, {2, 0, 5}, {2, 0, 5}}
		}, "rank 3's message 0 to rank 2 is sent twice"},
		{"a message is awaited twice", func(s [][]Step) { s[2][0].Await = append(s[2][0].Await, s[2][0].Await[0]) }, "is awaited twice"},
		{"rank 2 passes on what it has not heard", func(s [][]Step) {
			s[2] = []Step{{Notify: s[2][0].Notify}, {Await: s[2][0].Await}, s[2][1]}
		}, "may leave before rank 3 has entered"},
		{"rank 3 leaves at once", func(s [][]Step) {
			s[0][len(s[0])-1].Notify = []Send{{1, 2, 0}, {2, 2, 0}}
			s[3] = s[3][:1]
		}, "rank 3 may leave before rank 0 has entered"},
		{"rank 3 waits before it tells", func(s [][]Step) {
			s[3] = []Step{{Await: s[3][1].Await, Notify: s[3][0].Notify}}
		}, "waits for ever"},
		{"a rank that does not exist", func(s [][]Step) { s[3][0].Notify[0].To = 4 }, "notifies rank 4"},
		{"a network below the first", func(s [][]Step) { s[3][0].Notify[0].NIC = -1 }, "notifies over network -1"},
		{"a network beyond the last", func(s [][]Step) { s[3][0].Notify[0].NIC = MaxNICs }, "notifies over network 64"},
		{"itself", func(s [][]Step) { s[2][0].Await[0].From = 2 }, "awaits itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := make([][]Step, 4)
			for rank := range steps {
				steps[rank] = Tree(2).Steps(rank, 4)
			}
			if err := check(steps); err != nil {
				t.Fatal("before:", err)
			}
			c.wreck(steps)
			if err := check(steps); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ...%s...", err, c.want)
			}
		})
	}
	late := [][]Step{ // rank 1 goes on with the first copy, which knows of rank 0 alone
		{{Notify: []Send{{1, 0, 0}}}, {Await: []Receive{{1, 0}, {2, 0}}, Notify: []Send{{1, 0, 1}, {2, 0, 0}}}},
		{{Notify: []Send{{0, 0, 0}}}, {Await: []Receive{{0, 0}}}},
		{{Notify: []Send{{0, 0, 0}}}, {Await: []Receive{{0, 0}}}},
	}
	if err := check(late); err == nil || !strings.Contains(err.Error(), "rank 1 may leave before rank 2") {
		t.Error("a copy that is sent later, and knows more:", err)
	}
	broken := New("broken", func(rank, size int) []Step { return nil })
	if err := broken.Check(2); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "broken for 2 ranks") {
		t.Error(err)
	}
	if err := broken.Check(1); err != nil {
		t.Error(err)
	}
}

func TestMCD_3_1_1_ShuffleExchange(t *testing.T) {
	want := []Step{
		{Notify: []Send{{To: 4, Label: 0}}},
		{Await: []Receive{{4, 0}}, Notify: []Send{{To: 7, Label: 1}}},
		{Await: []Receive{{7, 1}}, Notify: []Send{{To: 1, Label: 2}}},
		{Await: []Receive{{1, 2}}},
	}
	if got := Shuffle().Steps(5, 8); !reflect.DeepEqual(got, want) {
		t.Errorf("rank 5 of 8: %+v", got)
	}
	if got := Shuffle().Steps(4, 5)[0].Notify[0].To; got != 0 {
		t.Errorf("dissemination: rank 4 of 5 tells %d first, want 0", got)
	}
}

// The frames of one barrier are as many as the doc comments promise.
func TestFrames(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 13, 31, 32, 100} {
		for _, c := range []struct {
			a    Algorithm
			want int
		}{
			{Shuffle(), n * digits(n, 2)},
			{Tree(2), n}, {Tree(3), n}, {Tree(5), n}, {Heap(2), n}, {Heap(4), n}, {Concurrent(), n},
			{TreeTree(2), 2 * (n - 1)}, {TreeTree(4), 2 * (n - 1)}, {Star(), 2 * (n - 1)}, {Chassis(), 2 * (n - 1)},
			{Redundant(Tree(3), 2), n + 1},
			{Hierarchical(Star(), Tree(2), 4), n},
			{Hierarchical(Star(), TreeTree(2), 4), 2 * (n - 1)},
		} {
			if n == 1 {
				c.want = 0
			}
			if got := c.a.Frames(n); got != c.want {
				t.Errorf("%v, %d ranks: %d frames, want %d", c.a, n, got, c.want)
			}
		}
	}
}

// SCMD §4, figure 9: the steps of the ranks of each kind of chassis, with one level between (20
// ranks or more).
func TestSCMD_4_ProceduresOfTheChassis(t *testing.T) {
	const size = 30 // root, three between, six at the low end
	steps := func(rank int) (s string) {
		for _, st := range ChassisRepeated().Steps(rank, size) {
			for _, r := range st.Await {
				s += fmt.Sprintf("<%d ", r.From)
			}
			for _, t := range st.Notify {
				s += fmt.Sprintf(">%d ", t.To)
			}
		}
		return strings.TrimSpace(s)
	}
	for _, c := range []struct {
		what string
		rank int
		want string
	}{
		{"root, Center: inner, tells below, hears below, inner, releases below", 0, "<1 <2 >1 >2 >3 <3 <1 <2 >1 >2 >3"},
		{"root, Right", 2, ">0 <0 >9 <9 >0 <0 >9"},
		{"between, Center: hears above, three inner ones, around them tells above and hears above", 3,
			"<0 <4 <5 >4 >5 <4 <5 >4 >5 >0 <0 <4 <5 >4 >5"},
		{"between, Left", 4, ">3 <3 >12 <12 >3 <3 >3 <3 >12"},
		{"low end, Center", 12, "<4 <13 <14 >13 >14 >4 <4 <13 <14 >13 >14"},
		{"low end, Left", 13, ">12 <12 >12 <12"},
	} {
		if got := steps(c.rank); got != c.want {
			t.Errorf("%s: rank %d: got  %s\nwant %s", c.what, c.rank, got, c.want)
		}
	}
}

// SCMD §5.2, equation (2), and figure 11: what the barrier over chassis costs at most, here with 3.86
// µs inside a chassis. docs/papers/scmd.md has both.
func TestSCMD_5_2_CostOfTheChassis(t *testing.T) {
	page, err := os.ReadFile("../../docs/papers/scmd.md")
	if err != nil {
		t.Fatal(err)
	}
	const tib = 3860 * time.Nanosecond // two messages, as of Star with two others
	inside := LogP{L: tib / 2}
	for _, c := range []struct {
		ranks, between int
	}{{12, 0}, {30, 1}, {66, 2}} {
		row := fmt.Sprintf("| %d | %d |", c.ranks, c.between)
		for _, tsr := range []time.Duration{60 * us, 120 * us} {
			formula := time.Duration(4+3*c.between)*tib + time.Duration(3*(c.between+1))*tsr
			s := Shape{Between: LogP{L: tsr}}
			for rank := range c.ranks {
				s.Of = append(s.Of, rank/3)
				if rank%3 == 0 {
					s.Hosts = append(s.Hosts, Host{Local: inside})
				}
			}
			repeated, halves := s.Cost(ChassisRepeated()), s.Cost(Chassis())
			if repeated > formula || halves > repeated {
				t.Errorf("%d ranks, TSR %v: in halves %v, repeated %v, by the formula %v", c.ranks, tsr, halves, repeated, formula)
			}
			for _, d := range []time.Duration{formula, repeated, halves} {
				row += fmt.Sprintf(" %.1f |", float64(d)/float64(us))
			}
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/papers/scmd.md lacks %s", row)
		}
		for _, p := range []LogP{DefaultLogP, mcd} { // inside and between alike
			tib, tsr := Star().Cost(3, p), p.Os+p.L+p.Or
			formula := time.Duration(4+3*c.between)*tib + time.Duration(3*(c.between+1))*tsr
			got := ChassisRepeated().Cost(c.ranks, p)
			t.Logf("%d ranks: %v of %v", c.ranks, got, formula)
			if got > formula || got < formula/2 {
				t.Errorf("%d ranks: %v, and %v by the formula", c.ranks, got, formula)
			}
		}
	}
}

// Messages of a tree's children come over different networks (MCD §3.3.1), and so do those of
// the concurrent barrier (§3.3.2).
func TestMCD_3_3_StripesSpreadWhatOneRankReceives(t *testing.T) {
	nics := func(a Algorithm, size int) (used []int) {
		for rank := 1; rank < size; rank++ {
			for _, s := range a.Steps(rank, size) {
				for _, tell := range s.Notify {
					used = append(used, tell.NIC)
				}
			}
		}
		return used
	}
	if got := nics(Stripe(Tree(3), 2), 3); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("3-ary tree: %v", got)
	}
	if got := nics(Stripe(Concurrent(), 2), 6); !slices.Equal(got, []int{0, 1, 0, 1, 0}) {
		t.Errorf("concurrent: %v", got)
	}
	// Left and Right to their Center, and a Center to the one above it, and back to its own.
	if got := nics(Stripe(Chassis(), 2), 6); !slices.Equal(got, []int{0, 1, 0, 0, 1, 0, 1}) {
		t.Errorf("chassis: %v", got)
	}
	release := Redundant(Tree(3), 2).Steps(0, 3)
	if got := release[len(release)-1].Notify; !reflect.DeepEqual(got, []Send{{All, 1, 0}, {All, 1, 1}}) {
		t.Errorf("redundant: the release is %+v", got)
	}
}

func TestParseTakesWhatStringGives(t *testing.T) {
	if !(Algorithm{}).IsZero() {
		t.Error("the zero Algorithm is one")
	}
	for _, a := range append(generators(), Auto(), AutoShared(2), Stripe(AutoShared(8), 2)) {
		b, err := Parse(a.String())
		if err != nil || b.String() != a.String() || b.IsZero() {
			t.Errorf("%v: %v, %v", a, b, err)
			continue
		}
		for rank := range 13 {
			if !reflect.DeepEqual(a.Steps(rank, 13), b.Steps(rank, 13)) {
				t.Errorf("%v: rank %d differs", a, rank)
			}
		}
	}
	for name, want := range map[string]string{
		"":                                       "there is no \"\"",
		"bush":                                   "there is no \"bush\"",
		"tree":                                   "something is missing",
		"auto:0":                                 "want a number of 1 to",
		"tree:1":                                 "want a number of 2 to",
		"tree:x":                                 "want a number",
		"tree:3:4":                               "\"4\" is too much",
		"hier:3:tree:2":                          "something is missing",
		"stripe:0:tree:2":                        "want a number of 1 to",
		"shuffle:shuffle":                        "too much",
		strings.Repeat("stripe:2:", 20) + "star": "deep",
	} {
		if _, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "there are: shuffle") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

const us = time.Microsecond

// The parameters that MCD §5.1.1 gives. Its gap is that of sends; a receive takes longer anyway.
var mcd = LogP{Os: 3 * us, L: 17500, Or: 9500, Gap: 9 * us}

// The closed formulas of MCD §5.1.2, where they are exact: at powers of k.
func TestMCD_5_1_2_CostFormulas(t *testing.T) {
	for _, p := range []LogP{mcd, {Os: us, L: 5 * us, Or: us / 2}} {
		hop := p.Os + p.L + p.Or
		for n, log := 2, time.Duration(1); n <= 1024; n, log = 2*n, log+1 {
			if got, want := Shuffle().Cost(n, p), log*hop; got != want {
				t.Errorf("shuffle, %d ranks: %v, want %v", n, got, want)
			}
			if got, want := Tree(2).Cost(n, p), (log+1)*hop; got != want {
				t.Errorf("tree:2, %d ranks: %v, want %v", n, got, want)
			}
			if got, want := Concurrent().Cost(n, p), hop+time.Duration(n-2)*p.Or+hop; got != want && p.Gap <= p.Or {
				t.Errorf("concurrent, %d ranks: %v, want %v", n, got, want)
			}
		}
		for _, k := range []int{3, 4, 5} {
			for n, log := k, time.Duration(1); n <= 1024; n, log = k*n, log+1 {
				if got, want := Tree(k).Cost(n, p), log*(hop+time.Duration(k-2)*p.Or)+hop; got != want {
					t.Errorf("tree:%d, %d ranks: %v, want %v", k, n, got, want)
				}
			}
		}
	}
}

// A gap above or counts in place of all but one or of a phase; between powers of k the cost is that
// of the next one at most.
func TestTree_CostFormula(t *testing.T) {
	for _, p := range []LogP{mcd, DefaultLogP, {Os: us, L: 5 * us, Or: us / 2, Gap: 6*us + us/2}} {
		hop := p.Os + p.L + p.Or
		for _, k := range []int{2, 3, 4, 5} {
			for n, log := k, time.Duration(1); n <= 300; n, log = k*n, log+1 {
				want := log*(hop+time.Duration(k-2)*max(p.Or, p.Gap)) + hop
				if got := Tree(k).Cost(n, p); got != want {
					t.Errorf("tree:%d, %d ranks: %v, want %v", k, n, got, want)
				}
				for less := n/k + 1; less < n; less++ {
					if got := Tree(k).Cost(less, p); got > want {
						t.Errorf("tree:%d, %d ranks: %v, and %v of %d", k, less, got, want, n)
					}
				}
			}
		}
	}
}

// MCD §3.2.2: a parent hears two children. Of 15 and 31 ranks, which it was measured with, each rank
// has two or none, and the phases follow each other.
func TestMCD_3_2_2_Heap(t *testing.T) {
	want := []Step{{Await: []Receive{{3, 0}, {4, 0}}, Notify: []Send{{To: 0}}}, {Await: []Receive{{0, 1}}}}
	if got := Heap(2).Steps(1, 15); !reflect.DeepEqual(got, want) {
		t.Errorf("rank 1 of 15: %+v", got)
	}
	hop := mcd.Os + mcd.L + mcd.Or
	for _, k := range []int{2, 3, 4} {
		for n, level := 1+k, time.Duration(1); n < 500; n, level = n*k+1, level+1 {
			want := level*(hop+time.Duration(k-1)*mcd.Or) + hop
			if got := Heap(k).Cost(n, mcd); got != want {
				t.Errorf("heap:%d, %d ranks: %v, want %v", k, n, got, want)
			}
		}
	}
}

// docs/papers/mcd.md has the model's figures beside the measured ones.
func TestMCD_4_ModelBesideTheMeasurements(t *testing.T) {
	page, err := os.ReadFile("../../docs/papers/mcd.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a        Algorithm
		ranks    int
		measured int // on the switch
	}{
		{Shuffle(), 32, 174}, {Tree(2), 32, 204}, {Tree(3), 31, 200}, {Heap(2), 31, 200}, {Concurrent(), 32, 309},
		{Tree(3), 15, 159}, {Stripe(Tree(3), 2), 15, 169}, {Heap(2), 15, 159}, {Stripe(Heap(2), 2), 15, 169},
		{Concurrent(), 16, 179}, {Stripe(Concurrent(), 2), 16, 147},
	} {
		cost := float64(c.a.Cost(c.ranks, mcd, mcd)) / float64(us)
		row := fmt.Sprintf("| `%v` | %d | %v | %d |", c.a, c.ranks, cost, c.measured)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/papers/mcd.md lacks %s", row)
		}
	}
}

// MCD §5.1.2: at n = 16 the 4-ary tree beats the shuffle exchange if and only if 3 or < os + L...
// by the formulas 3 hops + 4 or against 4 hops: where 4 or < hop, that is 3 or < os + L.
func TestMCD_5_1_2_FourAryTreeAgainstShuffleExchange(t *testing.T) {
	for or := us; or < 15*us; or += us / 2 {
		p := LogP{Os: 3 * us, L: 17500, Or: or}
		wins := Tree(4).Cost(16, p) < Shuffle().Cost(16, p)
		if want := 3*or < p.Os+p.L; wins != want {
			t.Errorf("or %v: the tree wins: %v, want %v", or, wins, want)
		}
	}
	if best := Auto(mcd).For(16); best.String() != "shuffle" {
		t.Errorf("Auto chose %v for the paper's parameters, want shuffle", best)
	}
	quick := LogP{Os: 3 * us, L: 17500, Or: 2 * us}
	if best := Auto(quick).For(16); best.String() == "shuffle" {
		t.Errorf("Auto chose %v where receives are cheap", best)
	}
}

// If nodes share processors, their work adds up.
func TestCost_SharedCores(t *testing.T) {
	p := LogP{Os: us, L: 0, Or: us, Cores: 1, Switch: 0}
	for _, a := range []Algorithm{Shuffle(), Star(), Tree(2)} {
		sends := a.Frames(8)
		receives := 0
		for rank := range 8 {
			for _, s := range a.Steps(rank, 8) {
				receives += len(s.Await)
			}
		}
		if got, want := a.Cost(8, p), time.Duration(sends+receives)*us; got != want {
			t.Errorf("%v: %v, want %v", a, got, want)
		}
	}
	p.Switch = 10 * us
	if shuffle, star := Shuffle().Cost(32, p), Star().Cost(32, p); shuffle < star*3/2 {
		t.Errorf("shuffle %v, star %v: turning from node to node should cost the one with more messages more", shuffle, star)
	}
	p = LogP{Os: us, L: us, Or: us, Copy: us}
	if got, want := Concurrent().Cost(5, p), (3+3)*us+(3+3)*us; got != want {
		t.Errorf("concurrent with a copy for each receiver: %v, want %v", got, want)
	}
}

// Of an algorithm for more networks than there are costs, the last ones stand for the others. What
// only asks for a cost keeps no messages.
func TestCost_OfMoreNetworks(t *testing.T) {
	a, slow := Stripe(Tree(4), 3), LogP{Os: us, L: 40 * us, Or: 20 * us}
	differ := false
	for size := 4; size < 20; size++ {
		got := a.Cost(size, mcd, slow)
		if want := a.Cost(size, mcd, slow, slow); got != want {
			t.Errorf("%d ranks: %v, want %v", size, got, want)
		}
		differ = differ || got != a.Cost(size, mcd, slow, mcd)
	}
	if !differ {
		t.Error("the third network costs what the first does: this shows nothing")
	}
	if _, events := a.walk(9, nil, false); events != nil {
		t.Errorf("%d messages are kept", len(events))
	}
}

func TestTimelineHasEveryMessage(t *testing.T) {
	exits, events := Tree(3).Timeline(9, mcd)
	if len(events) != 8+8 || slices.Max(exits) != Tree(3).Cost(9, mcd) {
		t.Fatalf("%d events, exits %v", len(events), exits)
	}
	for _, e := range events {
		if e.Left-e.Begun != mcd.Os || e.Arrived-e.Left != mcd.L || e.Handled-e.Arrived < mcd.Or {
			t.Errorf("%+v", e)
		}
	}
}
