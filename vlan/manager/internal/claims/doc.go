// Package claims knows which VID each pair of one node uses, and by whose wish.
//
// Wishes lie in layers over a pair, and the topmost counts:
//
//	forced    a path that works, in place of one that does not
//	claims    what the operator and the programs on this node asked for, the latest on top
//	plan      what the pair uses when nobody wants anything
//
// So whoever takes a claim back uncovers what was there before, whatever has happened in between: the plan may have been
// replaced, other claims may have come and gone. A claim that a new plan cannot fulfil is dropped.
//
// Only the pairs of one node are kept; the others' are checked and forgotten. A [Book] does no I/O and is for one
// goroutine at a time.
//
// Source: VFREC §4.1, §4.2.
package claims
