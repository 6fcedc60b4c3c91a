// Package rib is the routing information base of one node: which VID each of its pairs uses, and
// which source asked for it.
//
// Candidates lie in layers over a pair. The topmost is in force:
//
//	override     a path that works, in place of one that is down
//	candidates   what the operator and the programs on this node asked for, the latest on top
//	plan         what the pair uses if no source asks for anything
//
// Withdrawing a candidate uncovers the one below it, whatever has changed in between: the plan may
// be another one, other candidates may have come and gone. A candidate that a new plan cannot
// fulfil is dropped.
//
// The RIB keeps the pairs of its own node; it checks the pairs of other nodes and ignores them. A
// [RIB] does no I/O and is for one goroutine at a time.
//
// Source: VFREC §4.1, §4.2.
package rib
