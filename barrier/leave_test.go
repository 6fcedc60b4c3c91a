package barrier_test

import (
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/transport/fault"
)

// A node leaves a group of which it has used many masks. What it has completed with all members is
// not forgotten for the masks: a member that has missed the end, and the goodbye, learns it.
func TestClose_OfManyMasksRemembersAll(t *testing.T) {
	const size, masks = 8, 100
	synctest.Test(t, func(t *testing.T) {
		c := open(t, size, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "concurrent")})
		for bits := range masks {
			o := barrier.Options{Members: barrier.Bits(uint64(bits)<<1 | 1)}
			if _, err := all[0].ArriveWith(o); err != nil {
				t.Fatal(err)
			}
		}
		var tickets []barrier.Ticket
		for _, g := range all[1:] {
			tickets = append(tickets, arrive(t, g, barrier.Options{}))
		}
		c.faults[1][0].Cut(true)
		if err := all[0].Barrier(limit(t)); err != nil {
			t.Fatal(err)
		}
		_ = all[0].Close()
		c.faults[1][0].Cut(false)
		for k, ticket := range tickets {
			if err := ticket.Wait(limit(t)); err != nil {
				t.Errorf("node %d: %v", k+1, err)
			}
		}
	})
}
