package schedule

import "fmt"

// All in place of a rank is every other rank: a multicast.
const All = -1

// Receive is a message that a rank awaits.
type Receive struct {
	From  int
	Label uint8 // distinguishes messages of one sender to one receiver
}

// Send is a message that a rank sends.
type Send struct {
	To    int // a rank, or All
	Label uint8
	NIC   int // the network to send it over, from 0
}

// Step is what a rank does next: it awaits messages, in any order, and then sends its notifies.
type Step struct {
	Await  []Receive
	Notify []Send
}

// Networks returns how many networks the steps of a rank send over.
func Networks(steps []Step) (n int) {
	for _, step := range steps {
		for _, s := range step.Notify {
			n = max(n, s.NIC+1)
		}
	}
	return n
}

// Algorithm makes schedules. The zero Algorithm is none: Shuffle, Tree, Concurrent, Auto and the
// others of this package make one, and so does New. Algorithms are values, identified by their
// names.
type Algorithm struct {
	name    string
	in, out part // the halves; out is nil if it has none: then in is the whole

	releasesAll bool                     // out is one multicast of rank 0
	levels      bool                     // ranks are in groups, which Subset keeps
	choose      func(size int) Algorithm // of Auto
}

// part writes a piece of one rank's schedule. It advances the builder's label by the same number
// on every rank.
//
// An algorithm has two halves if rank 0 knows of all entries between them: in notifies rank 0,
// and out notifies the others.
type part func(*builder)

// New makes an algorithm of a function that returns each rank's steps. Its Check must return nil.
// Within another algorithm it may use the labels below 128.
func New(name string, steps func(rank, size int) []Step) Algorithm {
	return Algorithm{name: name, in: func(b *builder) {
		for _, s := range steps(b.rank, b.size) {
			for _, r := range s.Await {
				b.await(r.From, b.label+int(r.Label))
			}
			for _, t := range s.Notify {
				b.notifyVia(t.NIC, t.To, b.label+int(t.Label))
			}
			b.closed = true
		}
		b.label += maxLabels / 2 // leaves as many to a composition
	}}
}

// String returns the name that Parse takes.
func (a Algorithm) String() string { return a.name }

// IsZero reports whether a is none.
func (a Algorithm) IsZero() bool { return a.name == "" }

// For returns the algorithm that a is for a group of that size: itself, unless it is Auto, or
// made of it: then what that chooses.
func (a Algorithm) For(size int) Algorithm {
	if a.choose != nil {
		return a.choose(size)
	}
	return a
}

// Steps returns what a rank does in a barrier of size ranks: each step in turn, as soon as its
// messages are there. The barrier is left after the last step. Ranks are 0 to size-1; others
// panic. So do levels within levels that need more than the 256 labels there are, with an ErrWrong.
func (a Algorithm) Steps(rank, size int) []Step {
	if rank < 0 || rank >= size {
		panic(fmt.Sprintf("schedule: rank %d of %d", rank, size))
	}
	b := &builder{rank: rank, size: size, nics: 1, releases: 1}
	a.For(size).all()(b)
	return b.steps
}

// all is the whole barrier.
func (a Algorithm) all() part {
	if a.out == nil {
		return a.in
	}
	return sequence(a.in, a.out)
}

// halves returns a as halves. For an algorithm without them, in is all of it, and out has rank 0
// notify each of the others.
func (a Algorithm) halves() (in, out part) {
	if a.out == nil {
		return a.in, flat.down
	}
	return a.in, a.out
}

// Multicasts reports whether a schedule for that size has multicasts.
func (a Algorithm) Multicasts(size int) bool {
	for _, s := range a.Steps(0, size) {
		for _, t := range s.Notify {
			if t.To == All {
				return true
			}
		}
	}
	return false
}

// Frames returns how many frames one barrier costs without loss: the messages sent, a multicast
// counted once.
func (a Algorithm) Frames(size int) (n int) {
	a = a.For(size)
	for rank := range size {
		for _, s := range a.Steps(rank, size) {
			n += len(s.Notify)
		}
	}
	return n
}
