package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// notification is one message of a schedule; to may be schedule.All.
type notification struct{ from, to, nic int }

// phases sorts the messages of a schedule by phase: one more than the latest phase that the sender
// awaits. Within a phase they are in the order of their senders.
func phases(steps [][]schedule.Step) [][]notification {
	type message struct {
		from, to int
		label    uint8
	}
	phaseOf := map[message]int{} // of the messages so far
	arrived := func(r schedule.Receive, rank int) (phase int, ok bool) {
		if phase, ok = phaseOf[message{r.From, rank, r.Label}]; !ok {
			phase, ok = phaseOf[message{r.From, schedule.All, r.Label}]
		}
		return phase, ok
	}
	at := make([]int, len(steps))     // the step that each rank is at
	latest := make([]int, len(steps)) // phase that each rank has awaited
	// advance takes the steps of a rank whose messages are there.
	advance := func(rank int) (moved bool) {
		for ; at[rank] < len(steps[rank]); at[rank]++ {
			s, last := steps[rank][at[rank]], latest[rank]
			for _, r := range s.Await {
				phase, ok := arrived(r, rank)
				if !ok {
					return moved
				}
				last = max(last, phase)
			}
			latest[rank], moved = last, true
			for _, t := range s.Notify {
				phaseOf[message{rank, t.To, t.Label}] = last + 1
			}
		}
		return moved
	}
	for moved := true; moved; {
		moved = false
		for rank := range steps {
			moved = advance(rank) || moved
		}
	}
	var all [][]notification
	for rank, own := range steps {
		for _, s := range own {
			for _, t := range s.Notify {
				phase := phaseOf[message{rank, t.To, t.Label}]
				for len(all) < phase {
					all = append(all, nil)
				}
				all[phase-1] = append(all[phase-1], notification{rank, t.To, t.NIC})
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
