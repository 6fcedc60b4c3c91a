package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/internal/transcript"
)

// Happened returns the frames since the last call, and then each node's state in each barrier.
func (tr *story) Happened() string {
	lines := tr.Net.Happened()
	for _, g := range tr.groups {
		slices.Sort(g.numbers)
		for _, number := range g.numbers {
			words := []string{}
			for _, node := range g.nodes {
				words = append(words, tr.state(&g, node, number))
			}
			head := ""
			if len(tr.groups) > 1 || len(g.numbers) > 1 || number > 0 {
				head = strings.TrimSpace(fmt.Sprintf("%s number %d", g.name, number)) + ": "
			}
			for i, line := range transcript.Wrap(words) {
				if i > 0 {
					head = strings.Repeat(" ", len(head))
				}
				lines = append(lines, head+line)
			}
		}
	}
	return strings.Join(lines, "\n")
}

func (tr *story) state(g *storyGroup, node int, number uint8) string {
	if tr.Down[node] {
		return fmt.Sprintf("%d down", node)
	}
	m := tr.site(node).member(g.cfg.Identity)
	if m.left {
		return fmt.Sprintf("%d gone", node)
	}
	state, generation := m.State(number)
	word := fmt.Sprintf("%d %v", node, state)
	switch {
	case state == Waiting:
		var nodes []string
		for _, r := range slices.Compact(m.Missing(number, nil)) {
			nodes = append(nodes, strconv.Itoa(m.nodes[r]))
		}
		word += fmt.Sprintf("(for %s)", strings.Join(nodes, ","))
	case state == Failed:
		word += fmt.Sprintf("(%v)", m.Failure(number))
	case generation > 0:
		word = fmt.Sprintf("%d left", node)
	}
	return word
}

// String formats m for transcripts: what it says, of which barrier and generation.
func (m *Message) String() string {
	s := m.Kind.String()
	switch m.Kind {
	case Notify, Nack:
		s += fmt.Sprintf(" %d", m.Label)
	case Fail:
		s += fmt.Sprintf(" (%v)", m.Failure)
	case Report:
		if len(m.Report.Gone) > 0 {
			s += fmt.Sprintf(" (%v)", failureOf(m.Report.Gone))
		}
		if m.Report.Decided {
			s += " decided"
		}
		if m.Report.Query {
			s += "?"
		}
		return s
	}
	if m.Number != 0 {
		s += fmt.Sprintf(" number=%d", m.Number)
	}
	if m.Kind != Bye && m.Kind != ByeAck {
		s += fmt.Sprintf(" gen=%d", m.Generation)
	}
	if m.Entered {
		s += " (entered)"
	}
	if m.Lowest != 0 {
		s += fmt.Sprintf(" (epoch %d exists)", m.Lowest)
	}
	return s
}

// String formats f for transcripts.
func (f *Failure) String() string {
	var words []string
	for i := 0; i < len(f.Ranks); {
		why, ranks := f.Reasons[i], []int{}
		for ; i < len(f.Ranks) && f.Reasons[i] == why; i++ {
			ranks = append(ranks, f.Ranks[i])
		}
		words = append(words, fmt.Sprintf("%s: %v", ReasonName(why), ranks))
	}
	return strings.Join(words, ", ")
}

// String names s.
func (s State) String() string { return [...]string{"idle", "waiting", "failed"}[s%3] }
