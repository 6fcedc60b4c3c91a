package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

func TestPause_NothingIsLost(t *testing.T) {
	r := record(paper(3))
	r.Pause(1, time.Second)
	for i := range 100 {
		r.Send(i%2*2, 1, 0, "")
	}
	trace := r.run()
	if len(trace) != 100 || trace[0].at != time.Second+9500 || trace[99].at != time.Second+100*9500 {
		t.Errorf("%d arrived, %+v to %+v", len(trace), trace[0], trace[len(trace)-1])
	}
}

func TestPause_HoldsBackWorkAndSends(t *testing.T) {
	r := record(paper(2))
	r.Pause(0, 100*us)
	worked := monotime.Time{}
	r.Work(0, 5*us, func() { worked = r.Now() })
	r.Send(0, 1, 0, "")
	r.want(t, arrival{135 * us, 1, 0, 0, ""})
	if worked != monotime.At(105*us) {
		t.Errorf("work done at %v", worked)
	}
}

func TestCrash(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(r *recorded)
		want []arrival
		lost uint64
		sent uint64
	}{
		{"of the sender, during Os: nothing leaves", func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.Send(0, 1, 0, "")
			r.at(1*us, func() { r.Crash(0) })
		}, nil, 0, 0},
		{"of the sender, after Os: the frame is on its way, the next one is not", func(r *recorded) {
			r.Send(0, 1, 0, "first")
			r.Send(0, 1, 0, "second")
			r.at(4*us, func() { r.Crash(0) })
		}, []arrival{{30 * us, 1, 0, 0, "first"}}, 0, 1},
		{"of the receiver: one handled, one waiting, one to come", func(r *recorded) {
			for range 3 {
				r.Send(0, 1, 0, "")
			}
			r.at(24*us, func() { r.Crash(1) })
		}, nil, 3, 3},
		{"drops work, and later calls", func(r *recorded) {
			r.Work(0, 10*us, func() { r.Send(0, 1, 0, "work") })
			r.Work(0, 10*us, func() { r.Send(0, 1, 0, "work") })
			r.at(5*us, func() {
				r.Crash(0)
				r.Crash(0) // once more: nothing
				r.Pause(0, us)
				r.Work(0, 0, func() { r.Send(0, 1, 0, "work") })
				r.Send(0, 1, 0, "")
				r.Multicast(0, 0, "")
			})
		}, nil, 0, 0},
		{"in deliver", func(r *recorded) {
			r.Send(0, 1, 0, "first")
			r.Send(0, 1, 0, "second")
			r.on = func(arrival) { r.Crash(1); r.Send(1, 0, 0, "") }
		}, []arrival{{30 * us, 1, 0, 0, "first"}}, 1, 2},
		{"and restart: what came between is lost, what comes after is not", func(r *recorded) {
			r.Send(0, 1, 0, "between")
			r.Send(0, 1, 0, "after")
			r.Pause(1, time.Second) // ends with the crash
			r.at(10*us, func() { r.Crash(1) })
			r.at(22*us, func() { r.Restart(1) })
		}, []arrival{{33 * us, 1, 0, 0, "after"}}, 1, 2},
		{"and restart within one task: what was begun does not come back", func(r *recorded) {
			r.Send(0, 1, 0, "before")
			r.at(1*us, func() { r.Crash(0); r.Restart(0); r.Send(0, 1, 0, "again") })
		}, []arrival{{31 * us, 1, 0, 0, "again"}}, 0, 1},
		{"a pause while down does not outlast it", func(r *recorded) {
			r.Crash(0)
			r.Pause(0, time.Second)
			r.Restart(0)
			r.Send(0, 1, 0, "")
		}, []arrival{{30 * us, 1, 0, 0, ""}}, 0, 1},
		{"restart of a node that is alive: nothing", func(r *recorded) {
			r.Send(0, 1, 0, "")
			r.at(1*us, func() { r.Restart(0) })
		}, []arrival{{30 * us, 1, 0, 0, ""}}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(paper(2))
			c.do(r)
			r.want(t, c.want...)
			if got := r.Counters(); got.Lost != c.lost || got.Sent != c.sent || got.Delivered != uint64(len(c.want)) {
				t.Errorf("counters %+v, want %d lost, %d sent", got, c.lost, c.sent)
			}
		})
	}
}

func TestAlive(t *testing.T) {
	r := record(paper(2))
	before := r.Alive(1)
	r.Crash(1)
	down := !r.Alive(1) && r.Alive(0)
	if r.Restart(1); !before || !down || !r.Alive(1) {
		t.Error("Alive does not follow Crash and Restart")
	}
}

// storm is random traffic of every kind; it returns all that was delivered.
func storm(seed uint64, f Faults, multicasts bool) *recorded {
	random := rand.New(rand.NewPCG(1, 2)) // the calls are the same for every seed
	r := record(Config{Nodes: 8, NICs: 2, Os: 3 * us, L: 17500, Or: 9500, Gap: 6 * us, Faults: f, Seed: seed})
	for i := range 5000 {
		from, to, nic, kind := random.IntN(8), random.IntN(8), random.IntN(2), random.IntN(40)
		r.at(time.Duration(random.IntN(100_000))*us, func() {
			switch {
			case kind < 3 && multicasts:
				r.Multicast(from, nic, strconv.Itoa(i))
			case kind < 5:
				r.Work(from, 20*us, func() {})
			case kind < 7:
				r.Pause(from, 50*us)
			case kind < 8:
				r.Crash(from)
			case kind < 10:
				r.Restart(from)
			case kind < 12:
				r.Cut(from, to, kind == 10)
			default:
				r.Send(from, to, nic, strconv.Itoa(i))
			}
		})
	}
	r.run()
	return r
}

func TestNetwork_SameSeedSameRun(t *testing.T) {
	f := Faults{Loss: .02, Corrupt: .02, Duplicate: .02, Reorder: .05, Delay: .02}
	a, b, other := storm(1, f, true), storm(1, f, true), storm(2, f, true)
	if !slices.Equal(a.trace, b.trace) || a.Counters() != b.Counters() {
		t.Error("the same seed gives another run")
	}
	if slices.Equal(a.trace, other.trace) {
		t.Error("another seed gives the same run")
	}
	if !slices.Equal(storm(1, Faults{}, true).trace, storm(2, Faults{}, true).trace) {
		t.Error("without faults the seed matters")
	}
}

// Each copy ends in one counter, whatever happens to the nodes. (Without multicast each frame is
// one copy.)
func TestCounters_Balance(t *testing.T) {
	for seed := range uint64(20) {
		r := storm(seed, Faults{Loss: .1, Corrupt: .1, Duplicate: .1, Reorder: .1, Delay: .1, Misroute: .1, Burst: 3, Ring: 20}, false)
		c := r.Counters()
		if ends := c.Delivered + c.Lost + c.Corrupted + c.Misrouted + c.Cut; ends != c.Sent+c.Duplicated || c.Delivered != uint64(len(r.trace)) || c.Cut == 0 {
			t.Errorf("seed %d: %+v", seed, c)
		}
	}
}

// Without faults: per sender, receiver and NIC, what was sent first is delivered first, and all
// of it.
func TestNetwork_FIFO(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r := record(Config{Nodes: 5, NICs: 2, Os: 3 * us, L: 17500, Or: 9500, Gap: 6 * us})
	type path struct{ from, to, nic int }
	sent, got := make(map[path]int), make(map[path]int)
	for range 20_000 {
		p := path{random.IntN(5), random.IntN(5), random.IntN(2)}
		r.at(time.Duration(random.IntN(100_000))*us, func() {
			r.Send(p.from, p.to, p.nic, strconv.Itoa(sent[p]))
			sent[p]++
			r.Pause(p.to, us)
		})
	}
	r.on = func(a arrival) {
		p := path{a.from, a.to, a.nic}
		if want := strconv.Itoa(got[p]); a.m != want {
			t.Fatalf("%+v: message %s, want %s", p, a.m, want)
		}
		got[p]++
	}
	if n := len(r.run()); n != 20_000 {
		t.Errorf("%d arrived", n)
	}
}

func TestNetwork_AllocatesNothing(t *testing.T) {
	var q Queue
	var n *Network[int]
	c := paper(10)
	c.Faults = Faults{Reorder: .1, Delay: .1}
	n = NewNetwork(&q, c, func(to, from, nic int, m int) { n.Send(to, (to+m)%10, nic, m) })
	for i := range 10 {
		n.Send(i, (i+1)%10, 0, i)
	}
	q.Run(monotime.At(time.Second))
	if a := testing.AllocsPerRun(10, func() { q.Run(q.Now().Add(10 * time.Millisecond)) }); a > 1 {
		t.Errorf("%v allocs in some 10,000 events, want 0", a)
	}
}

func TestNetwork_OutOfRangePanics(t *testing.T) {
	n := NewNetwork(new(Queue), paper(2), func(int, int, int, int) {})
	for name, f := range map[string]func(){
		"from": func() { n.Send(2, 0, 0, 0) }, "to": func() { n.Send(0, 2, 0, 0) }, "to -1": func() { n.Send(0, -1, 0, 0) },
		"nic": func() { n.Send(0, 1, 1, 0) }, "nic -1": func() { n.Multicast(0, -1, 0) }, "node": func() { n.Crash(2) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
