package sim

import (
	"fmt"
	"testing"
	"time"
)

// Costs here: Os 3, L 10, Or 5 us. Each case says when deliver is called.
func TestNetwork_Timing(t *testing.T) {
	to := func(node int, at time.Duration, from, nic int) arrival { return arrival{at * us, node, from, nic, ""} }
	for _, c := range []struct {
		name string
		gap  time.Duration
		do   func(r *recorded)
		want []arrival
	}{
		{"one way: Os + L + Or", 0, func(r *recorded) { r.Send(0, 1, 0, "") }, []arrival{to(1, 18, 0, 0)}},
		{"to itself: the same", 0, func(r *recorded) { r.Send(0, 0, 0, "") }, []arrival{to(0, 18, 0, 0)}},
		{"two receivers: the second send leaves at 2 Os", 0, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 0, "")
		}, []arrival{to(1, 18, 0, 0), to(2, 21, 0, 0)}},
		{"gap larger than Os: the second send leaves at Os + gap", 8 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 0, "")
		}, []arrival{to(1, 18, 0, 0), to(2, 26, 0, 0)}},
		{"gap smaller than Os: no effect", 2 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 0, "")
		}, []arrival{to(1, 18, 0, 0), to(2, 21, 0, 0)}},
		{"gap is between starts: over by itself after a pause of the program", 8 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.at(20*us, func() { r.Send(0, 2, 0, "") })
		}, []arrival{to(1, 18, 0, 0), to(2, 38, 0, 0)}},
		{"two NICs have gaps of their own, but one processor", 8 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 1, "")
			r.Send(0, 3, 0, "")
		}, []arrival{to(1, 18, 0, 0), to(2, 21, 0, 1), to(3, 26, 0, 0)}},
		{"a send that waits for its gap lets none pass", 8 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 0, "")
			r.Send(0, 3, 1, "")
		}, []arrival{to(1, 18, 0, 0), to(2, 26, 0, 0), to(3, 29, 0, 1)}},
		{"k at once: Os + L + k Or", 0, func(r *recorded) {
			for from := 1; from < 4; from++ {
				r.Send(from, 0, 0, "")
			}
		}, []arrival{to(0, 18, 1, 0), to(0, 23, 2, 0), to(0, 28, 3, 0)}},
		{"k at once, gap larger than Or", 8 * us, func(r *recorded) {
			for from := 1; from < 4; from++ {
				r.Send(from, 0, 0, "")
			}
		}, []arrival{to(0, 18, 1, 0), to(0, 26, 2, 0), to(0, 34, 3, 0)}},
		{"k at once on two NICs: the gap does not count, the processor does", 8 * us, func(r *recorded) {
			r.Send(1, 0, 0, "")
			r.Send(2, 0, 1, "")
		}, []arrival{to(0, 18, 1, 0), to(0, 23, 2, 1)}},
		{"what deliver sends queues behind what has arrived", 0, func(r *recorded) {
			r.Send(1, 0, 0, "")
			r.Send(2, 0, 0, "")
			r.on = func(a arrival) {
				if a.from == 1 {
					r.Send(0, 3, 0, "")
				}
			}
		}, []arrival{to(0, 18, 1, 0), to(0, 23, 2, 0), to(3, 41, 0, 0)}},
		{"a send after work waits for it", 0, func(r *recorded) {
			r.Work(0, 4*us, func() {})
			r.Send(0, 1, 0, "")
		}, []arrival{to(1, 22, 0, 0)}},
		{"a send at the end of work", 0, func(r *recorded) {
			r.Work(0, 4*us, func() { r.Send(0, 1, 0, "") })
		}, []arrival{to(1, 22, 0, 0)}},
		{"a message waits for the receiver's work", 0, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Work(1, 20*us, func() {})
		}, []arrival{to(1, 25, 0, 0)}},
		{"a multicast is one send, to all but the sender", 8 * us, func(r *recorded) {
			r.Multicast(2, 1, "")
			r.Send(2, 0, 0, "")
		}, []arrival{to(0, 18, 2, 1), to(1, 18, 2, 1), to(3, 18, 2, 1), to(0, 23, 2, 0)}},
		{"pause of the receiver before: handled at its end", 0, func(r *recorded) {
			r.Pause(1, 15*us)
			r.Send(0, 1, 0, "")
		}, []arrival{to(1, 20, 0, 0)}},
		{"pause in the midst of Or", 0, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.at(15*us, func() { r.Pause(1, 4*us) })
		}, []arrival{to(1, 22, 0, 0)}},
		{"pause in the midst of Os", 0, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.at(1*us, func() { r.Pause(0, 10*us) })
		}, []arrival{to(1, 28, 0, 0)}},
		{"pauses that overlap", 0, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.at(14*us, func() { r.Pause(1, 4*us) })
			r.at(16*us, func() { r.Pause(1, 4*us) })
			r.at(17*us, func() { r.Pause(1, 1*us) }) // within: no effect
		}, []arrival{to(1, 24, 0, 0)}},
		{"pause while a send waits for its gap: no effect", 20 * us, func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 2, 0, "")
			r.at(5*us, func() { r.Pause(0, 5*us) })
		}, []arrival{to(1, 18, 0, 0), to(2, 38, 0, 0)}},
		{"pause longer than the gap: the send begins at its end, and so does the next gap", 20 * us, func(r *recorded) {
			for to := 1; to < 4; to++ {
				r.Send(0, to, 0, "")
			}
			r.at(5*us, func() { r.Pause(0, 25*us) })
		}, []arrival{to(1, 18, 0, 0), to(2, 48, 0, 0), to(3, 68, 0, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(Config{Nodes: 4, NICs: 2, Os: 3 * us, L: 10 * us, Or: 5 * us, Gap: c.gap})
			c.do(r)
			r.want(t, c.want...)
		})
	}
}

func TestNetwork_CostsNothing(t *testing.T) {
	r := record(Config{Nodes: 2})
	r.Send(0, 1, 0, "first")
	r.Send(0, 1, 0, "second")
	r.want(t, arrival{0, 1, 0, 0, "first"}, arrival{0, 1, 0, 0, "second"})
}

// Half the round trip is Os + L + Or: 30 us with the costs measured there.
func TestMCD_5_1_1_PingPong(t *testing.T) {
	const rounds = 1000
	r := record(paper(2))
	r.on = func(a arrival) {
		if len(r.trace) < 2*rounds {
			r.Send(a.to, a.from, 0, "")
		}
	}
	r.Send(0, 1, 0, "")
	r.run()
	if half := r.Now().Since() / (2 * rounds); half != 30*us {
		t.Errorf("half a round trip takes %v, want 30us", half)
	}
}

// The k-ary tree barrier with multicast release, all arriving at once, n a power of k, without gap:
// (Os + L + (k-1) Or) log_k n + Os + L + Or.
func TestMCD_3_2_TreeBarrierCost(t *testing.T) {
	for k := 2; k <= 4; k++ {
		for n, phases := k, 1; phases <= 5; n, phases = n*k, phases+1 {
			t.Run(fmt.Sprintf("k=%d n=%d", k, n), func(t *testing.T) {
				c := paper(n)
				want := (c.Os+c.L+time.Duration(k-1)*c.Or)*time.Duration(phases) + c.Os + c.L + c.Or
				if got := treeBarrier(k, c); got != want {
					t.Errorf("took %v, want %v", got, want)
				}
			})
		}
	}
}

func treeBarrier(k int, c Config) time.Duration {
	r := record(c)
	heard := make([]int, c.Nodes)
	step := func(rank int) { // tell the parent once all below have told
		unit := 1
		for below := 0; rank%(unit*k) == 0 && unit < c.Nodes; unit *= k {
			if below += k - 1; heard[rank] < below {
				return
			}
		}
		if rank == 0 {
			r.Multicast(0, 0, "release")
		} else if sum := rank / unit % k; heard[rank] == (k-1)*log(k, unit) {
			r.Send(rank, rank-sum*unit, 0, "tell")
		}
	}
	r.on = func(a arrival) {
		if a.m == "tell" {
			heard[a.to]++
			step(a.to)
		}
	}
	for rank := range c.Nodes {
		step(rank)
	}
	r.run()
	return r.Now().Since()
}

func log(k, n int) (digits int) {
	for ; n > 1; n /= k {
		digits++
	}
	return digits
}

// p-1 sends, one after the other: the last is there after (p-2) max(Os, Gap) + Os + L + Or.
func TestLogP_LinearBroadcast(t *testing.T) {
	for _, gap := range []time.Duration{0, 2 * us, 12 * us} {
		c := paper(100)
		c.Gap = gap
		r := record(c)
		for to := 1; to < c.Nodes; to++ {
			r.Send(0, to, 0, "")
		}
		r.run()
		if want := 98*max(c.Os, gap) + 30*us; r.Now().Since() != want {
			t.Errorf("gap %v: took %v, want %v", gap, r.Now(), want)
		}
	}
}
