// Package history has the events that the nodes of a cluster write down, and a checker that knows
// nothing of rawlane's code: it is written from the promises alone.
//
//	B1  nobody leaves barrier k before all members of its group entered k
//	B2  if all live, all leave
//	B4  after a crash every survivor names the same dead
//	W1  a completed put is in memory, whole, at its place
//	F1  records of one sender come once and in order, and all those that were flushed come
//
// All nodes are processes of one machine, with one monotonic clock: instants of several nodes
// compare.
package history

import (
	"fmt"
	"maps"
	"slices"
)

// Event is something that a node has done or seen.
type Event struct {
	Node int    `json:"node"`
	At   int64  `json:"at"` // ns of the machine's clock
	Kind string `json:"kind"`
	// Group and Generation of a barrier: enter, leave, fail. Groups of other members have other
	// numbers.
	Group      int    `json:"group,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Dead       []int  `json:"dead,omitempty"` // fail: who is named

	Peer  int    `json:"peer,omitempty"`  // read: who wrote; pop: who pushed; pushed: the receiver; down: who
	Value uint64 `json:"value,omitempty"` // read: the generation found; pop, pushed: the number
	Whole bool   `json:"whole,omitempty"` // read: all bytes are of one put
	Text  string `json:"text,omitempty"`  // error: what it says
}

// The kinds.
const (
	Enter  = "enter"  // just before a barrier
	Leave  = "leave"  // just after
	Fail   = "fail"   // the barrier failed, through Dead
	Read   = "read"   // own memory, after the barrier behind which a peer has put there
	Pop    = "pop"    // a record of a FIFO
	Pushed = "pushed" // up to this number all are flushed
	Down   = "down"   // an operation failed, as a peer counts as dead
	Error  = "error"  // an operation failed otherwise
	Ended  = "ended"  // the node has done all that it was to do
)

// Expect is what was done to the cluster.
type Expect struct {
	Nodes int
	// Dead are nodes that were killed, or count as such: silent for longer than they may be.
	Dead []int
	// Unseen are nodes of which nothing is expected, not even agreement: they were cut off.
	Unseen []int
}

// Check returns each broken promise.
func Check(all []Event, x Expect) (wrong []string) {
	c := &checker{Expect: x, wrong: &wrong}
	c.barriers(all)
	c.failures(all)
	c.ends(all)
	c.reads(all)
	c.records(all)
	return wrong
}

type checker struct {
	Expect
	wrong *[]string
}

func (c *checker) broken(format string, a ...any) {
	*c.wrong = append(*c.wrong, fmt.Sprintf(format, a...))
}

// lives reports whether a node is expected to do all that it promises.
func (c *checker) lives(node int) bool {
	return !slices.Contains(c.Dead, node) && !slices.Contains(c.Unseen, node)
}

// barrier is one generation of one group.
type barrier struct {
	group      int
	generation uint64
}

// barriers checks B1: the last to enter enters before the first leaves; and of B2, that who enters
// leaves, or says that the barrier has failed. Members of group 0 are all nodes, those of a later
// group all that live: the others may have groups of their own by that number.
func (c *checker) barriers(all []Event) {
	entered, left, failed := map[barrier]map[int]int64{}, map[barrier]map[int]int64{}, map[barrier]map[int]int64{}
	note := func(at map[barrier]map[int]int64, e *Event) {
		b := barrier{e.Group, e.Generation}
		if at[b] == nil {
			at[b] = map[int]int64{}
		}
		if _, twice := at[b][e.Node]; twice {
			c.broken("node %d: %s of generation %d of group %d twice", e.Node, e.Kind, e.Generation, e.Group)
		}
		at[b][e.Node] = e.At
	}
	for i := range all {
		e := &all[i]
		if e.Group > 0 && !c.lives(e.Node) {
			continue
		}
		switch e.Kind {
		case Enter:
			note(entered, e)
		case Leave:
			note(left, e)
		case Fail:
			note(failed, e)
		}
	}
	for b, entries := range entered {
		for node := range entries {
			_, leaves := left[b][node]
			if _, fails := failed[b][node]; c.lives(node) && !leaves && !fails {
				c.broken("node %d has entered generation %d of group %d, and neither left it nor failed",
					node, b.generation, b.group)
			}
		}
	}
	for b, exits := range left {
		first := slices.Min(slices.Collect(maps.Values(exits)))
		for node := range c.Nodes {
			at, is := entered[b][node]
			if b.group > 0 && !c.lives(node) {
				continue
			}
			if !is || at > first {
				c.broken("generation %d of group %d was left at %d; node %d entered at %d (%t)",
					b.generation, b.group, first, node, at, is)
			}
		}
	}
}

// failures checks B4: who fails names the dead, all of them and nobody else, and all name the same.
func (c *checker) failures(all []Event) {
	dead := slices.Sorted(slices.Values(c.Dead))
	failed := map[int]bool{}
	for i := range all {
		e := &all[i]
		if e.Kind != Fail || !c.lives(e.Node) {
			continue
		}
		failed[e.Node] = true
		if named := slices.Sorted(slices.Values(e.Dead)); !slices.Equal(named, dead) {
			c.broken("node %d names %v as dead, dead are %v", e.Node, named, dead)
		}
	}
	for node := range c.Nodes {
		if c.lives(node) && failed[node] != (len(dead) > 0) {
			c.broken("node %d: a barrier has failed: %t; dead are %v", node, failed[node], dead)
		}
	}
}

// ends checks B2, and that nothing else has failed: nor did anything because of a peer that lives.
func (c *checker) ends(all []Event) {
	ended := map[int]bool{}
	for i := range all {
		switch e := &all[i]; {
		case e.Kind == Ended:
			ended[e.Node] = true
		case e.Kind == Error && c.lives(e.Node):
			c.broken("node %d: %s", e.Node, e.Text)
		case e.Kind == Down && c.lives(e.Node) && c.lives(e.Peer):
			c.broken("node %d takes node %d for dead, which lives: %s", e.Node, e.Peer, e.Text)
		}
	}
	for node := range c.Nodes {
		if c.lives(node) && !ended[node] {
			c.broken("node %d has not come to its end", node)
		}
	}
}

// reads checks W1: behind barrier k the memory holds what was put before it, at which all look.
func (c *checker) reads(all []Event) {
	type place struct {
		node       int
		generation uint64
	}
	looked := map[place]bool{}
	for i := range all {
		e := &all[i]
		if e.Kind != Read || !c.lives(e.Node) {
			continue
		}
		looked[place{e.Node, e.Generation}] = true
		if c.lives(e.Peer) && (e.Value != e.Generation || !e.Whole) {
			c.broken("node %d: behind barrier %d the put of node %d is that of %d, whole: %t",
				e.Node, e.Generation, e.Peer, e.Value, e.Whole)
		}
	}
	for i := range all {
		e := &all[i]
		if e.Kind == Leave && e.Group == 0 && c.lives(e.Node) && !looked[place{e.Node, e.Generation}] {
			c.broken("node %d has not read what was put before barrier %d", e.Node, e.Generation)
		}
	}
}

// records checks F1, by sender and receiver.
func (c *checker) records(all []Event) {
	type path struct{ from, to int }
	last, flushed := map[path]uint64{}, map[path]uint64{}
	for i := range all {
		switch e := &all[i]; e.Kind {
		case Pop:
			p := path{e.Peer, e.Node}
			if e.Value != last[p]+1 {
				c.broken("node %d pops record %d of node %d behind %d", e.Node, e.Value, e.Peer, last[p])
			}
			last[p] = e.Value
		case Pushed:
			flushed[path{e.Node, e.Peer}] = e.Value
		}
	}
	for p, n := range flushed {
		if c.lives(p.from) && c.lives(p.to) && last[p] < n {
			c.broken("node %d has pushed %d records to node %d, which popped %d", p.from, n, p.to, last[p])
		}
	}
}
