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
	died := append(good()[:8], Event{Node: 0, Kind: Fail, Generation: 2, Dead: []int{1}}, Event{Node: 0, Kind: Ended})
	if wrong := Check(died, Expect{Nodes: 2, Dead: []int{1}}); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	// One that is cut off has the others for dead, and goes on alone, before them.
	cut := append(died,
		Event{Node: 1, At: 20, Kind: Enter, Group: 1, Generation: 1}, Event{Node: 1, At: 21, Kind: Leave, Group: 1, Generation: 1},
		Event{Node: 0, At: 30, Kind: Enter, Group: 1, Generation: 1}, Event{Node: 0, At: 31, Kind: Leave, Group: 1, Generation: 1})
	if wrong := Check(cut, Expect{Nodes: 2, Dead: []int{1}}); len(wrong) > 0 {
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
		{"a node hangs", "node 1 has not come", func(h []Event) []Event { return h[:9] }, nil},
		{"a stale put", "the put of node 0 is that of 0", func(h []Event) []Event { h[4].Value = 0; return h }, nil},
		{"half a put", "whole: false", func(h []Event) []Event { h[4].Whole = false; return h }, nil},
		{"a lost record", "which popped 1", func(h []Event) []Event { return slices.Delete(h, 7, 8) }, nil},
		{"a record twice", "pops record 1", func(h []Event) []Event { h[7].Value = 1; return h }, nil},
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
