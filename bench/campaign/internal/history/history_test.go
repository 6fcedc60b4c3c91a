package history

import (
	"slices"
	"strings"
	"testing"
)

// good is a history of two nodes without a fault.
func good() []Event {
	return []Event{
		{Node: 0, At: 1, Kind: Enter, Generation: 1},
		{Node: 1, At: 2, Kind: Enter, Generation: 1},
		{Node: 0, At: 3, Kind: Leave, Generation: 1},
		{Node: 1, At: 4, Kind: Leave, Generation: 1},
		{Node: 1, At: 5, Kind: Read, Generation: 1, Peer: 0, Value: 1, Whole: true},
		{Node: 0, At: 5, Kind: Read, Generation: 1, Peer: 1, Value: 1, Whole: true},
		{Node: 0, At: 5, Kind: Pushed, Peer: 1, Value: 2},
		{Node: 1, At: 6, Kind: Pop, Peer: 0, Value: 1},
		{Node: 1, At: 7, Kind: Pop, Peer: 0, Value: 2},
		{Node: 0, At: 8, Kind: Ended},
		{Node: 1, At: 8, Kind: Ended},
	}
}

func TestCheck_Good(t *testing.T) {
	if wrong := Check(good(), Expect{Nodes: 2}); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	died := append(good()[:9], Event{Node: 0, At: 9, Kind: Enter, Generation: 2},
		Event{Node: 0, Kind: Down, Peer: 1}, Event{Node: 0, Kind: Fail, Generation: 2, Dead: []int{1}},
		// What is cut off, as node 1 is, takes the other one for dead, and goes on by itself, too.
		Event{Node: 1, At: 10, Kind: Enter, Group: 1, Generation: 1}, Event{Node: 1, At: 11, Kind: Leave, Group: 1, Generation: 1},
		Event{Node: 1, Kind: Down, Peer: 0},
		Event{Node: 0, At: 12, Kind: Enter, Group: 1, Generation: 1}, Event{Node: 0, At: 13, Kind: Leave, Group: 1, Generation: 1},
		Event{Node: 0, Kind: Ended})
	if wrong := Check(died, Expect{Nodes: 2, Dead: []int{1}}); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

// Each anomaly is found: the checker can fail.
func TestCheck_Anomalies(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(h []Event) []Event
		dead       []int
	}{
		{"an early exit", "was left at 1", func(h []Event) []Event { h[2].At = 1; return h }, nil},
		{"nobody entered", "node 1 entered at 0", func(h []Event) []Event { return slices.Delete(h, 1, 2) }, nil},
		{"two entries", "twice", func(h []Event) []Event { return append(h, h[0]) }, nil},
		{"a node hangs", "node 1 has not come", func(h []Event) []Event { return h[:10] }, nil},
		{"a stale put", "the put of node 0 is that of 0", func(h []Event) []Event { h[4].Value = 0; return h }, nil},
		{"half a put", "whole: false", func(h []Event) []Event { h[4].Whole = false; return h }, nil},
		{"a lost record", "which popped 1", func(h []Event) []Event { return slices.Delete(h, 8, 9) }, nil},
		{"a record twice", "pops record 1", func(h []Event) []Event { h[8].Value = 1; return h }, nil},
		{"a barrier that one does not leave", "node 1 has entered generation 1 of group 0, and neither left", func(h []Event) []Event {
			return slices.Delete(h, 3, 4)
		}, nil},
		{"a put at which nobody looks", "node 1 has not read what was put before barrier 1", func(h []Event) []Event {
			return slices.Delete(h, 4, 5)
		}, nil},
		{"a live peer is down", "node 0 takes node 1 for dead, which lives: silent", func(h []Event) []Event {
			return append(h, Event{Kind: Down, Peer: 1, Text: "silent"})
		}, nil},
		{"an error", "no room", func(h []Event) []Event { return append(h, Event{Kind: Error, Text: "no room"}) }, nil},
		{"a false accusation", "names [1]", func(h []Event) []Event {
			return append(h, Event{Kind: Fail, Dead: []int{1}})
		}, nil},
		{"nobody notices a death", "a barrier has failed: false", func(h []Event) []Event { return h }, []int{1}},
	} {
		wrong := strings.Join(Check(c.change(good()), Expect{Nodes: 2, Dead: c.dead}), "\n")
		if !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", c.name, wrong, c.want)
		}
	}
}
