package agreement

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

var (
	whole  = flag.Bool("exhaustive", false, "search the largest spaces, too: minutes, and gigabytes")
	states = flag.Int("states", 100_000, "the most states of each space, without -exhaustive")
)

// space is a space of states: members and their messages, with what may still go wrong.
type space struct {
	name                          string
	size                          int
	crashes, loss, double, reordr int
	wrong                         int // accusations of members that live
	late                          int // so many of the last members make their groups at some time
}

// world is one state. Time does not pass: whoever asks may ask again once its messages are gone.
type world struct {
	space
	members []*Agreement // nil: crashed
	absent  []bool       // members that have not made their groups
	consent []Consent    // of these
	flying  []flying     // of one pair in the order in which they were sent
	path    *step        // that led here
}

type flying struct {
	from, to int
	noGroup  bool // with the report's version
	report   Report
}

type step struct {
	before *step
	what   string
}

func (s *step) String() string {
	var all []string
	for ; s != nil; s = s.before {
		all = append(all, s.what)
	}
	slices.Reverse(all)
	return strings.Join(all, "\n")
}

var modelNow = monotime.At(time.Second)

func (s space) start() *world {
	w := &world{space: s, consent: make([]Consent, s.size)}
	for rank := range s.size {
		w.absent = append(w.absent, rank >= s.size-s.late)
		a := New(Config{Rank: rank, Size: s.size, NICs: 1, Incarnation: uint32(rank) + 1,
			PeerTimeout: 1 << 50, FirstQuery: time.Second})
		w.members = append(w.members, &a)
	}
	return w
}

// next returns a copy of w, to which something happens.
func (w *world) next(format string, a ...any) *world {
	n := *w
	n.members = slices.Clone(w.members)
	n.absent = slices.Clone(w.absent)
	n.consent = slices.Clone(w.consent)
	n.flying = slices.Clone(w.flying)
	n.path = &step{w.path, fmt.Sprintf(format, a...)}
	return &n
}

// touch returns a member for changes.
func (w *world) touch(rank int) *Agreement {
	a := *w.members[rank]
	a.peers = slices.Clone(a.peers)
	w.members[rank] = &a
	return &a
}

func (w *world) lives(rank int) bool {
	return w.members[rank] != nil && !w.absent[rank]
}

// send puts reports on their way. A copy of one that flies already says nothing new: its sender
// does not ask while one flies.
func (w *world) send(from int, out []Send) {
	for _, s := range out {
		w.flying = append(w.flying, flying{from: from, to: s.To, report: s.Report})
	}
}

// arrive delivers a message.
func (w *world) arrive(f flying) {
	a := w.members[f.to]
	switch {
	case a == nil:
	case !w.lives(f.to):
		if f.report.Query && w.consent[f.to].To(f.from, uint32(f.from)+1, f.report.Gone) {
			w.flying = append(w.flying, flying{from: f.to, to: f.from, noGroup: true, report: Report{Version: f.report.Version}})
		}
	case f.noGroup:
		w.touch(f.to).HandleNoGroup(modelNow, f.from, f.report.Version)
	default:
		a = w.touch(f.to)
		a.Hear(f.from, uint32(f.from)+1)
		w.send(f.to, a.Handle(modelNow, f.from, uint32(f.from)+1, &f.report, nil))
	}
}

// successors calls f with all states that may follow.
func (w *world) successors(f func(*world)) {
	seen := map[[2]int]int{} // by pair: how many are before
	for i, m := range w.flying {
		pair := [2]int{m.from, m.to}
		before := seen[pair]
		seen[pair]++
		if before > 1 || before == 1 && w.reordr == 0 {
			continue
		}
		n := w.next("%d->%d %+v", m.from, m.to, m.report)
		n.flying = slices.Delete(n.flying, i, i+1)
		n.reordr -= before
		n.arrive(m)
		f(n)
		if before == 0 && w.loss > 0 {
			n := w.next("%d->%d %+v is lost", m.from, m.to, m.report)
			n.flying = slices.Delete(n.flying, i, i+1)
			n.loss--
			f(n)
		}
		if before == 0 && w.double > 0 {
			n := w.next("%d->%d %+v, and a copy stays", m.from, m.to, m.report)
			n.double--
			n.arrive(m)
			f(n)
		}
	}
	for rank, a := range w.members {
		if !w.lives(rank) {
			continue
		}
		if w.crashes > 0 {
			n := w.next("%d crashes", rank)
			n.crashes--
			n.members[rank] = nil
			f(n)
		}
		w.accusations(rank, f)
		if _, ok := a.Deadline(); ok && !w.busy(rank) {
			n := w.next("%d advances", rank)
			n.advance(rank)
			f(n)
		}
	}
	for rank, absent := range w.absent {
		if absent && w.members[rank] != nil {
			n := w.next("%d makes its group", rank)
			n.appear(rank)
			f(n)
		}
	}
}

func (w *world) allAppear() {
	for rank, absent := range w.absent {
		if absent && w.members[rank] != nil {
			w.appear(rank)
		}
	}
}

// appear has a member make its group.
func (w *world) appear(rank int) {
	w.absent[rank] = false
	w.touch(rank).Uphold(w.consent[rank])
	w.consent[rank] = nil
}

// busy reports whether a member does not ask, as its questions or the answers are on their way.
func (w *world) busy(rank int) bool {
	return slices.ContainsFunc(w.flying, func(m flying) bool { return m.from == rank || m.to == rank && !m.report.Query })
}

func (w *world) accusations(rank int, f func(*world)) {
	for other := range w.members {
		dead := w.members[other] == nil
		if other == rank || w.members[rank].Has(other) || w.members[rank].ended() || !dead && w.wrong == 0 {
			continue
		}
		n := w.next("%d accuses %d", rank, other)
		if !dead {
			n.wrong--
		}
		n.touch(rank).Accuse(modelNow, other, Silent)
		f(n)
	}
}

func (w *world) advance(rank int) {
	a := w.touch(rank)
	a.next = modelNow
	w.send(rank, a.Advance(modelNow, nil))
}

// key is all of a state that matters. That a member has sent, and when, does not.
func (w *world) key(b []byte) []byte {
	b = append(b, byte(w.crashes), byte(w.loss), byte(w.double), byte(w.reordr), byte(w.wrong))
	for rank, a := range w.members {
		if a == nil {
			b = append(b, 0xff)
			continue
		}
		b = appendGone(append(b, flag8(w.absent[rank])), unionOf(w.consent[rank]))
		b = appendGone(b, unionOf(a.held))
		b = append(b, byte(a.state), flag8(a.announce), flag8(a.differs), byte(a.version), byte(a.expelled))
		b = appendGone(b, a.gone)
		for _, p := range a.peers {
			b = append(b, flag8(p.agrees)|flag8(p.decided)<<1|flag8(p.incarnation != 0)<<2|flag8(p.excluded != 0)<<3)
		}
	}
	for from := range w.size {
		for to := range w.size { // pairs do not wait for each other
			for _, m := range w.flying {
				if m.from == from && m.to == to {
					r := &m.report
					b = append(b, 0xfe, byte(from), byte(to), byte(r.Version),
						flag8(m.noGroup)|flag8(r.Query)<<1|flag8(r.Decided)<<2|flag8(r.Echo != 0)<<3)
					b = appendGone(b, r.Gone)
				}
			}
		}
	}
	return b
}

// unionOf is all that matters of what a member has consented to, where none begins anew.
func unionOf(c Consent) []Gone {
	a := Agreement{cfg: Config{Rank: -1, Size: 1 << 10}}
	for _, given := range c {
		a.merge(modelNow, given.Gone)
	}
	return a.gone
}

func flag8(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendGone(b []byte, gone []Gone) []byte {
	set := uint32(0)
	for _, g := range gone {
		set |= 1 << g.Rank
	}
	return binary.LittleEndian.AppendUint32(b, set)
}

// check returns a broken promise, or "".
func (w *world) check(wrong int) string {
	for p, a := range w.members {
		if a == nil || a.state < Decided {
			continue
		}
		if wrong == 0 {
			if a.state == Excluded {
				return fmt.Sprintf("%d is excluded, and nobody was accused wrongly", p)
			}
			for _, g := range a.gone {
				if w.members[g.Rank] != nil {
					return fmt.Sprintf("%d has decided on %v, and %d lives", p, a.gone, g.Rank)
				}
			}
		}
		for q, b := range w.members {
			if b != nil && a.state == Decided && b.state == Decided && !slices.Equal(a.gone, b.gone) && !a.Has(q) && !b.Has(p) {
				return fmt.Sprintf("%d has decided on %v, %d on %v", p, a.gone, q, b.gone)
			}
		}
	}
	return ""
}

func (w *world) someDecided() bool {
	return slices.ContainsFunc(w.members, func(a *Agreement) bool { return a != nil && a.state == Decided })
}

// settles runs on without further faults: in the end all that live have decided, or are excluded.
func (w *world) settles() string {
	w = w.next("no more faults")
	w.allAppear()
	for range 50 {
		for len(w.flying) > 0 {
			m := w.flying[0]
			w.flying = w.flying[1:]
			w.arrive(m)
		}
		for rank := range w.members {
			if !w.lives(rank) {
				continue
			}
			if w.members[rank].state == Quiet && w.someDecided() {
				w.touch(rank).Begin(modelNow) // its barrier does not end
			}
			for other, a := range w.members {
				if a == nil || a.state == Excluded {
					w.touch(rank).Accuse(modelNow, other, Silent)
				}
			}
			w.advance(rank)
		}
	}
	for rank, a := range w.members {
		if a != nil && a.state == Querying {
			return fmt.Sprintf("%d still asks about %v", rank, a.gone)
		}
	}
	if wrong := w.check(1); wrong != "" {
		return wrong
	}
	return w.parts()
}

// parts has those that have decided ask those that may have decided otherwise, as they do before
// they wait for them: each learns who does not go on with it.
func (w *world) parts() string {
	for p, a := range w.members {
		for q, b := range w.members {
			if a == nil || a.state != Decided || b == nil || p == q || a.Has(q) || !w.lives(q) {
				continue
			}
			if !a.KnowsDecision(q) {
				asks := w.touch(p).Confirm(q, nil)
				b = w.touch(q)
				answer := b.Handle(modelNow, p, uint32(p)+1, &asks[0].Report, nil)
				a = w.touch(p)
				a.Handle(modelNow, q, uint32(q)+1, &answer[0].Report, nil)
			}
			together := b.state == Decided && slices.Equal(a.gone, b.gone)
			if _, _, is := a.Outside(q); is == together && a.expelled == 0 {
				return fmt.Sprintf("%d has decided on %v, %d is in state %d with %v, and they go on together: %t",
					p, a.gone, q, b.state, b.gone, !is)
			}
		}
	}
	return ""
}

// search visits all states of a space, or as many as there may be.
func (s space) search(most int, start *world) (count int, wrong string) {
	seed, seed2 := maphash.MakeSeed(), maphash.MakeSeed()
	visited := map[[2]uint64]struct{}{}
	stack := []*world{start}
	var buf []byte
	for len(stack) > 0 && len(visited) < most && wrong == "" {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		buf = w.key(buf[:0])
		k := [2]uint64{maphash.Bytes(seed, buf), maphash.Bytes(seed2, buf)}
		if _, is := visited[k]; is {
			continue
		}
		visited[k] = struct{}{}
		wrong = w.check(s.wrong)
		if wrong == "" && len(w.flying) == 0 {
			wrong = w.settles()
		}
		if wrong != "" {
			wrong += "\n" + w.path.String()
		}
		w.successors(func(n *world) { stack = append(stack, n) })
	}
	return len(visited), wrong
}

var spaces = []space{
	{name: "2 members, all die but one", size: 2, crashes: 1, loss: 1, double: 1, reordr: 1},
	{name: "2 members, one accused wrongly", size: 2, crashes: 1, loss: 1, double: 1, reordr: 1, wrong: 2},
	{name: "3 members, one dies", size: 3, crashes: 1, loss: 1, double: 1, reordr: 1},
	{name: "3 members, two die", size: 3, crashes: 2, loss: 1, double: 1, reordr: 1},
	{name: "3 members, one accused wrongly", size: 3, wrong: 1, loss: 1, double: 1, reordr: 1},
	{name: "3 members, one dies, one accused wrongly", size: 3, crashes: 1, wrong: 1, double: 1, reordr: 1},
	{name: "3 members, accused wrongly by each other", size: 3, wrong: 2},
	{name: "3 members, one makes its group late", size: 3, crashes: 1, loss: 1, double: 1, reordr: 1, late: 1},
	{name: "4 members, one dies", size: 4, crashes: 1},
	{name: "4 members, two die", size: 4, crashes: 2},
	{name: "4 members, two die, a loss", size: 4, crashes: 2, loss: 1},
	{name: "4 members, two die, a duplicate", size: 4, crashes: 2, double: 1},
	{name: "4 members, two die, out of order", size: 4, crashes: 2, reordr: 1},
	{name: "4 members, one makes its group late", size: 4, crashes: 1, late: 1},
	{name: "4 members, two accused wrongly, one makes its group late", size: 4, wrong: 2, late: 1},
	{name: "4 members, two accused wrongly, two make their groups late", size: 4, wrong: 2, late: 2},
	{name: "4 members, one accused wrongly", size: 4, crashes: 1, wrong: 1},
}

// Members crash at any step, and a message is lost, another one doubled, another one overtaken. In
// every state the decisions agree, and from every quiet one all survivors come to one.
func TestAgreement_Exhaustive(t *testing.T) {
	for _, s := range spaces {
		t.Run(s.name, func(t *testing.T) {
			most := math.MaxInt
			switch {
			case testing.Short(): // with the race detector, from which a core without goroutines gains little
				most = *states / 30
			case !*whole:
				most = *states
			}
			count, wrong := s.search(most, s.start())
			if wrong != "" {
				t.Fatal(wrong)
			}
			t.Logf("%d states", count)
			if count == most {
				t.Logf("as far as -states; all of them with -exhaustive")
			}
		})
	}
}
