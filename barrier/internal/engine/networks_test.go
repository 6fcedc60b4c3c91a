package engine

import (
	"testing"
	"time"
)

// Where a network is dead, nacks of each number take the others in their turn, also where a member
// answers those of another number each time.
func TestNack_EachNumberTakesTheNetworksInTurn(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.cfg.NICs = 2
	a.arrives(0)
	a.arrives(1)
	by := [2][2]int{} // nacks by number and network
	for range 20 {
		next, ok := a.Deadline()
		if !ok {
			t.Fatal("no nack is due")
		}
		a.now = next
		for _, s := range a.Advance(a.now, nil) {
			if s.Message.Kind != Nack {
				continue
			}
			by[s.Message.Number][s.NIC]++
			if s.NIC == 0 { // the other network is dead
				answer := a.from(1, NotYet, s.Message.Generation, s.Message.Label)
				answer.Number = s.Message.Number
				a.hears(1, answer)
			}
		}
		a.now = a.now.Add(time.Microsecond)
	}
	for number, n := range by {
		if n[0] == 0 || n[1] == 0 {
			t.Errorf("number %d: %d nacks by network 0, %d by 1", number, n[0], n[1])
		}
	}
}

// A status request, and its repetition, go by each network.
func TestStatus_AsksByEachNetwork(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.cfg.NICs = 2
	a.arrives(0)
	a.want(sends(a.RequestStatus(0, nil)), "all status request gen=1, all status request gen=1 nic=1")
	a.hears(1, a.reply(1, 0, true))
	a.want(sends(a.RepeatStatus(0, nil)), "2 status request gen=1, 2 status request gen=1 nic=1")
}
