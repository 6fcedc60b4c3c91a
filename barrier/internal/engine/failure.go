package engine

import (
	"fmt"
	"slices"
)

// Reason is why a barrier failed.
type Reason uint8

// The reasons.
const (
	Silent     Reason = iota + 1 // members that do not answer
	Left                         // members that said goodbye before they entered
	Restarted                    // members that have lost their memory, or are not at the same generation
	Algorithms                   // members that run another algorithm
	Elsewheres                   // members that wait for each other in different barriers
	reasons
)

var reasonNames = [reasons]string{"", "silent", "left", "restarted", "another algorithm", "another barrier"}

// String names r.
func (r Reason) String() string { return reasonNames[min(int(r), len(reasonNames)-1)] }

// Failure is why a barrier failed, and through whom.
type Failure struct {
	Reason    Reason
	Ranks     []int     // sorted
	Others    int       // how many more there are
	Elsewhere Elsewhere // Elsewheres: the barrier that the first one waits in; known to the one who noticed
}

// String formats f for logs.
func (f *Failure) String() string {
	s := fmt.Sprintf("%v: %v", f.Reason, f.Ranks)
	if f.Others > 0 {
		s += fmt.Sprintf(" and %d more", f.Others)
	}
	return s
}

// gone reports whether the members that f names cannot take part in any barrier of the group any more.
func (f *Failure) gone() bool { return f.Reason == Silent || f.Reason == Left || f.Reason == Restarted }

// newFailure sorts the ranks. They are its own from now on.
func newFailure(reason Reason, ranks ...int) *Failure {
	slices.Sort(ranks)
	return &Failure{Reason: reason, Ranks: slices.Compact(ranks)}
}
