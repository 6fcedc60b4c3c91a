package mcd

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
)

// restful is a policy whose rests take as long as the test says, while other processes have the core.
func restful(t *testing.T, away *time.Duration) (p *spinPolicy, yields *int) {
	p, yields = new(spinPolicy), new(int)
	p.init(100 * time.Microsecond)
	p.longRest, p.longTurn = longRest, longTurn // a quick machine's
	t.Cleanup(p.end)
	p.yield = func() {
		*yields++
		time.Sleep(*away) // virtual
	}
	return p, yields
}

// A spinner keeps its core from other processes for 5 us; where others seem to want it, not at all.
func TestRest_WhoGetsTheCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []struct {
			spun  time.Duration
			crowd int32
			want  int
		}{
			{0, 0, 0}, {5 * time.Microsecond, 0, 0}, {5*time.Microsecond + 1, 0, 1},
			{0, 5, 0}, {0, 6, 1}, {time.Second, 6, 1},
		} {
			var away time.Duration
			p, yields := restful(t, &away)
			p.crowd.Store(k.crowd)
			p.rest(clock.Now(), 0, k.spun, 1)
			if *yields != k.want {
				t.Errorf("%+v: %d", k, *yields)
			}
		}
	})
}

// Two rests of more than 1.5 us show that others want the core; when 19 in a row have been shorter,
// they are taken for gone, however many there were before.
func TestRest_NoticesACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const polite = time.Millisecond // long enough to be: each rest is one for other processes, too
		var away time.Duration
		p, _ := restful(t, &away)
		rests := func(n int, each time.Duration) {
			away = each
			for range n {
				now := clock.Now()
				if back := p.rest(now, 0, polite, 1); back.Sub(now) != each {
					t.Errorf("a rest of %v ended after %v", each, back.Sub(now))
				}
			}
		}
		rests(10, 1500)
		if p.crowd.Load() != 0 {
			t.Error("rests of 1.5 us are long")
		}
		for _, before := range []int{2, 1000} {
			rests(1, 1501)
			if p.isCrowded() {
				t.Fatal("one long rest is a crowd")
			}
			rests(1, 1501)
			if !p.isCrowded() {
				t.Fatal("others want the core, and it did not notice")
			}
			rests(before, 1501)
			rests(1000, 0)
			if p.crowd.Load() != 0 {
				t.Fatal("the others are gone, and it did not notice")
			}
		}
		rests(2, 1501)
		rests(1, 0)
		if p.isCrowded() {
			t.Error("two of three rests were long, and it is sure")
		}
		rests(1000, 1501)
		rests(18, 0)
		if !p.isCrowded() {
			t.Error("it was sure, and after 18 short rests the others are taken for gone")
		}
		rests(1, 0)
		if p.isCrowded() {
			t.Error("19 short rests, and the others are not taken for gone")
		}
	})
}

// What giving the core away takes where nobody wants it is not taken for a crowd on a slow machine,
// either.
func TestRest_OnASlowMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := 2 * longRest
		p, _ := restful(t, &away)
		p.longRest = 2 * longRest
		for range 10 {
			p.rest(clock.Now(), 0, time.Millisecond, 1)
		}
		if p.isCrowded() {
			t.Errorf("rests of %v are long where those of %v are not", away, p.longRest)
		}
		away++
		for range 2 {
			p.rest(clock.Now(), 0, time.Millisecond, 1)
		}
		if !p.isCrowded() {
			t.Error("others want the core, and it did not notice")
		}
	})
	if s := slowness(); s < 1 || s > 1000 {
		t.Errorf("this machine is %v times slower than a quick one", s)
	}
	var p spinPolicy
	p.init(0)
	defer p.end()
	if want := time.Duration(slowness() * float64(longRest)); p.longRest != want {
		t.Errorf("a rest of %v is long here, want %v", p.longRest, want)
	}
}

// Where a process has more than 32 endpoints for each of Go's processors, no wait spins, and no
// link's goroutine stays awake.
func TestLimit_ManyEndpoints(t *testing.T) {
	var p spinPolicy
	p.init(time.Second)
	defer p.end()
	others := endpoints.Load()
	p.procs.Store(others) // as many endpoints as processors
	for _, c := range []struct {
		more int32
		want time.Duration
	}{{31 * others, time.Second}, {31*others + 1, 0}, {0, time.Second}} {
		endpoints.Add(c.more)
		if got, awake := p.limit(), p.staysAwake(); got != c.want || awake != (c.want > 0) {
			t.Errorf("%d endpoints, %d processors: spins %v, want %v; stays awake: %v", others+c.more, others, got, c.want, awake)
		}
		endpoints.Add(-c.more)
	}
}

// A process that has fewer processors than when the endpoint was opened, as the quota of its
// container has changed, counts the new ones: some waits later their number is right, whether
// these spin or sleep.
func TestProcessors_ThatGo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for name, wait := range map[string]func(*spinPolicy){
		"spins":               func(p *spinPolicy) { p.note(time.Microsecond) },
		"sleeps":              func(p *spinPolicy) { p.noteSleep(0, time.Millisecond) },
		"sleeps, and must so": func(p *spinPolicy) { p.avoids.Store(true); p.noteSleep(0, time.Millisecond) },
	} {
		runtime.GOMAXPROCS(8)
		var p spinPolicy
		p.init(time.Second)
		if p.hasAll(1) {
			t.Errorf("%s: %d endpoints have all of 8 processors", name, endpoints.Load())
		}
		runtime.GOMAXPROCS(1)
		for range recountAfter {
			wait(&p)
		}
		if !p.hasAll(1) {
			t.Errorf("%s: one spinner, one processor, and there are more", name)
		}
		p.end()
	}
}

// A processor is lent at each look where spinners may have all of them, and else once a millisecond.
func TestRest_WhoIsLentTheProcessor(t *testing.T) {
	others := endpoints.Load()
	var p spinPolicy
	p.init(time.Second)
	defer p.end()
	p.procs.Store(others + 3)
	for range 2 {
		for k := range 1000 {
			if lent := p.lends(time.Microsecond, 2); lent != (k == 999) {
				t.Fatalf("2 spinners, 3 processors, after %d us: %v", k+1, lent)
			}
		}
	}
	if !p.lends(0, 3) {
		t.Error("3 spinners, 3 processors: not lent")
	}
	e := openSpinning(t)
	if !p.lends(0, 2) {
		t.Error("2 spinners, another endpoint, 3 processors: not lent")
	}
	_ = e.Close()
	if p.lends(0, 2) {
		t.Error("the other endpoint is closed, and lent nevertheless")
	}
}

// Where goroutines of this process are ready when waits begin, these lend the processor after their
// first look, as long as spinners may have all of it.
func TestRest_LendsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away, turn time.Duration
		p, _ := restful(t, &away)
		p.procs.Store(endpoints.Load())
		p.lend = func() { time.Sleep(turn) } // virtual
		const first, later = time.Microsecond, 2 * time.Microsecond
		for k, step := range []struct {
			turn, spun time.Duration
			procs      int32 // more than spinners may have
			want       bool
		}{
			{longTurn, first, 0, false}, // nobody was ready
			{longTurn + 1, first, 0, false},
			{longTurn + 1, later, 0, false}, // who was had become so meanwhile
			{longTurn + 1, first, 1, false}, // it was an idle processor's thread that woke
			{longTurn + 1, first, 0, true},
			{0, later, 0, true},
			{0, first, 0, false},
			{longTurn + 1, first, 0, true},
		} {
			turn = step.turn
			p.procs.Store(endpoints.Load() + step.procs)
			p.kept.Store(int64(lendAfter)) // it is lent in any case
			p.rest(clock.Now(), time.Microsecond, step.spun, 1)
			p.procs.Store(endpoints.Load())
			if p.lendsFirst(1) != step.want {
				t.Errorf("after rest %d: %v, want %v", k, !step.want, step.want)
			}
		}
		if p.procs.Store(endpoints.Load() + 1); p.lendsFirst(1) {
			t.Error("there is another processor for those that are ready")
		}
	})
}

// A goroutine that is bound to its thread lends no processor at each look, though its loans are as
// long as if others were ready; one that is not bound does, from when that is seen.
func TestRest_BoundToItsThread(t *testing.T) {
	var p spinPolicy
	p.init(time.Second)
	defer p.end()
	all := int32(runtime.GOMAXPROCS(0)) // spinners that have all processors
	for k, step := range []struct {
		ready, bound bool
		want         bool
	}{
		{true, false, true},
		{false, true, true}, // a loan costs it nothing yet
		{true, true, false},
		{true, false, true},
	} {
		p.ready.Store(0)
		if step.ready {
			p.ready.Store(crowded)
		}
		if step.bound {
			runtime.LockOSThread()
		}
		for range recountAfter {
			p.note(time.Microsecond)
		}
		if step.bound {
			runtime.UnlockOSThread()
		}
		if p.lends(0, all) != step.want {
			t.Errorf("step %d: lent %v, want %v", k, !step.want, step.want)
		}
		p.kept.Store(0)
		if p.lendsFirst(all) != (step.want && step.ready) {
			t.Errorf("step %d: lent first %v", k, !step.want)
		}
	}
	if p.bound.Store(true); p.lends(lendAfter-1, all) || !p.lends(1, all) {
		t.Error("it is to lend once a millisecond nevertheless")
	}
}

// What other processes have of the core is lost, and nothing else: not what other goroutines of this
// one have.
func TestRest_WhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away time.Duration
		p, _ := restful(t, &away)
		p.rest(clock.Now().Add(-time.Second), 0, time.Millisecond, 1)
		if lost := time.Duration(p.lost.Load()); lost != 0 {
			t.Errorf("%v lost to other goroutines", lost)
		}
		away = 10 * time.Millisecond
		p.rest(clock.Now().Add(-time.Second), 0, time.Millisecond, 1)
		if lost := time.Duration(p.lost.Load()); lost != away || p.limit() == 0 {
			t.Errorf("%v lost, want %v; spins for %v", lost, away, p.limit())
		}
		p.rest(clock.Now(), 0, time.Millisecond, 1)
		if lost := time.Duration(p.lost.Load()); lost != 2*away || p.limit() != 0 {
			t.Errorf("%v lost, want %v; spins for %v", lost, 2*away, p.limit())
		}
	})
}

// watched is a context that is told when somebody asks whether it has ended.
type watched struct {
	context.Context
	asked func()
}

func (w *watched) Err() error {
	w.asked()
	return w.Context.Err()
}

// A spinner looks at the clock and its context, and gives its core away, after each 64 empty polls;
// as long as others want the core, after each; and after the first one, too, where goroutines of its
// process are ready.
func TestSpin_HowOftenItRests(t *testing.T) {
	for crowdAt, want := range map[int][]int{
		64: {64, 65, 66, 67, 68, 69, 128, 192, 256},
		0:  {1, 65, 129, 193, 257},
	} {
		synctest.Test(t, func(t *testing.T) { // time stands still: each rest is short
			e, _, links, _ := openScripts(t, 1, func(cfg *Config) { cfg.Spin = time.Hour })
			if crowdAt == 0 {
				e.spinning.procs.Store(endpoints.Load())
				e.spinning.ready.Store(crowdMax)
			}
			var c Completion
			var looks []int
			polls := 0
			links[0].poll = func() {
				if polls++; polls == 260 {
					c.Complete(nil)
				}
			}
			ctx := &watched{t.Context(), func() {
				if looks = append(looks, polls); polls == crowdAt {
					e.spinning.crowd.Store(11) // six rests are needed to forget it
				}
			}}
			if err := e.Await(ctx, &c); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(looks, want) {
				t.Errorf("crowded at %d: looks after polls %v, want %v", crowdAt, looks, want)
			}
		})
	}
}
