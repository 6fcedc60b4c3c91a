package schedule

import "fmt"

// maxLabels is how many labels there are.
const maxLabels = 256

// builder collects one rank's steps, in the order in which messages are awaited and sent.
//
// A part may be written for some of the ranks, numbered from 0. place returns their ranks in the
// whole.
type builder struct {
	rank, size int
	place      func(rank int) int // nil: the part is for all ranks
	positions  []int              // by rank: that in the whole, of a subset; nil: the part is for all of it
	span       int                // of a subset: the size of the whole
	label      int                // the first that is free
	nics       int                // networks to spread messages over
	releases   int                // networks that a multicast goes over
	steps      []Step
	closed     bool // the next await or notify begins a step
}

// among writes a part for some ranks, of which this one is number rank of size. Rank r of the
// part is rank place(r) of b.
func (b *builder) among(rank, size int, place func(int) int, p part) {
	sub := *b
	sub.rank, sub.size, sub.positions = rank, size, nil
	sub.place = func(r int) int { return b.at(place(r)) }
	p(&sub)
	b.steps, b.label, b.closed = sub.steps, sub.label, sub.closed
}

// skip advances the label as p would, for a rank that has no part in p: as it does for the last of
// p's ranks, which has the least to do.
func (b *builder) skip(size int, p part) {
	other := builder{rank: size - 1, size: size, label: b.label, nics: 1, place: b.at}
	p(&other)
	b.label = other.label
}

func (b *builder) at(rank int) int {
	if b.place == nil {
		return rank
	}
	return b.place(rank)
}

// step returns the step that is being written. An await after a notify begins a new one.
func (b *builder) step(awaits bool) *Step {
	n := len(b.steps)
	if n == 0 || b.closed || awaits && len(b.steps[n-1].Notify) > 0 {
		b.steps = append(b.steps, Step{})
		b.closed = false
	}
	return &b.steps[len(b.steps)-1]
}

// await adds a message that the rank awaits before its later notifies.
func (b *builder) await(from, label int) {
	s := b.step(true)
	s.Await = append(s.Await, Receive{b.at(from), checked(label)})
}

// notify adds a message to another rank. Messages that one receiver may get at one time have
// different spreads, so that several networks share them.
func (b *builder) notify(to, label, spread int) { b.notifyVia(spread%b.nics, to, label) }

// notifyVia is notify over a network, to one rank or All.
func (b *builder) notifyVia(nic, to, label int) {
	if to != All {
		to = b.at(to)
	}
	s := b.step(false)
	s.Notify = append(s.Notify, Send{to, checked(label), nic})
}

func checked(label int) uint8 {
	if label < 0 || label >= maxLabels {
		panic(wrongf("label %d (want less than %d: too many levels?)", label, maxLabels))
	}
	return uint8(label)
}

// wrong is what Steps panics with if there is no such schedule. It is ErrWrong.
type wrong string

func wrongf(format string, args ...any) wrong {
	return wrong("schedule: " + fmt.Sprintf(format, args...))
}

func (e wrong) Error() string { return string(e) }

// Is makes errors.Is(e, ErrWrong) hold.
func (e wrong) Is(target error) bool { return target == ErrWrong }
