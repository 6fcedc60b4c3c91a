package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// notification is one message of a schedule; to may be schedule.All.
type notification struct{ from, to, nic int }

// phases sorts the messages of the schedule by phase: one more than the latest phase that the
// sender awaits. That is when the message begins if a message's way takes one unit of time, and all
// else takes none. Within a phase they are in the order of their senders.
func (p *plan) phases() (all [][]notification) {
	type message struct {
		from, to int
		label    uint8
	}
	begun := map[message]int{}
	_, events := p.algorithm.Timeline(p.nodes, schedule.LogP{L: 1})
	for _, e := range events {
		begun[message{e.From, e.To, e.Label}] = int(e.Begun)
	}
	for rank, steps := range p.steps {
		for _, s := range steps {
			for _, t := range s.Notify {
				to := t.To
				if to == schedule.All {
					to = (rank + 1) % p.nodes // any other one
				}
				phase := begun[message{rank, to, t.Label}]
				for len(all) <= phase {
					all = append(all, nil)
				}
				all[phase] = append(all[phase], notification{rank, t.To, t.NIC})
			}
		}
	}
	return all
}

// isRelease reports whether a phase is multicasts alone.
func isRelease(phase []notification) bool {
	return !slices.ContainsFunc(phase, func(n notification) bool { return n.to != schedule.All })
}

// onNetwork picks the messages that go over a network.
func onNetwork(phase []notification, nic int) []notification {
	return slices.DeleteFunc(slices.Clone(phase), func(n notification) bool { return n.nic != nic })
}
