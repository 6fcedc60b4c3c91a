package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// filter selects frames, and says what happens to them.
type filter struct{ what, kind, from, to, nic string }

func parseFilters(args []string) (all []filter, err error) {
	for _, a := range args {
		what, rest, _ := strings.Cut(a, "=")
		kind, way, _ := strings.Cut(rest, ":")
		from, to, ok := strings.Cut(way, "->")
		to, nic, one := strings.Cut(to, "/")
		if !one {
			nic = "*"
		}
		if !ok || what != "drop" && what != "hold" && what != "copy" {
			return nil, fmt.Errorf("%q is no filter", a)
		}
		all = append(all, filter{what, kind, from, to, nic})
	}
	return all, nil
}

func (f *filter) matches(kind string, from, to, nic int) bool {
	is := func(pattern, s string) bool { return pattern == "*" || pattern == s }
	return is(f.kind, kind) && is(f.from, strconv.Itoa(from)) && is(f.to, strconv.Itoa(to)) && is(f.nic, strconv.Itoa(nic))
}

// happened returns the events since the last call: frames, and then each node's state in each
// barrier.
func (tr *transcript) happened() string {
	lines := wrap(counted(tr.log))
	tr.log = nil
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
			for i, line := range wrap(words) {
				if i > 0 {
					head = strings.Repeat(" ", len(head))
				}
				lines = append(lines, head+line)
			}
		}
	}
	return strings.Join(lines, "\n")
}

func (tr *transcript) state(g *storyGroup, node int, number uint8) string {
	if tr.down[node] {
		return fmt.Sprintf("%d down", node)
	}
	m := tr.sites[node].member(g.cfg.Identity)
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

// counted replaces lines that appear again and again by one with their number.
func counted(log []string) (lines []string) {
	const many = 30
	if len(log) < many {
		return log
	}
	times := map[string]int{}
	for _, line := range log {
		times[line]++
	}
	for _, line := range log {
		switch n := times[line]; {
		case n > 1:
			lines = append(lines, fmt.Sprintf("%s (%d times)", line, n))
			times[line] = 0
		case n == 1:
			lines = append(lines, line)
		}
	}
	return lines
}

// wrap joins words to lines.
func wrap(words []string) (lines []string) {
	const width = 110
	for _, w := range words {
		if n := len(lines); n > 0 && len(lines[n-1])+len(w) < width {
			lines[n-1] += "   " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
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

var kindNames = [kinds]string{
	"?", "notify", "nack", "not yet", "fail", "bye", "bye ack", "status request", "status reply", "no such group", "report",
}

// String names k.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// String formats f for transcripts.
func (f *Failure) String() string {
	var words []string
	for i := 0; i < len(f.Ranks); {
		why, ranks := f.ReasonOf(i), []int{}
		for ; i < len(f.Ranks) && f.ReasonOf(i) == why; i++ {
			ranks = append(ranks, f.Ranks[i])
		}
		words = append(words, fmt.Sprintf("%s: %v", ReasonName(why), ranks))
	}
	return strings.Join(words, ", ")
}

// String names s.
func (s State) String() string { return [...]string{"idle", "waiting", "failed"}[s%3] }
