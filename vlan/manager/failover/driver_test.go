package failover_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"

	"github.com/rawlane/rawlane/vlan/control"
)

var watched = control.FailoverConfig{VIDs: []transport.VID{1, 2}, WaitToRestore: 2 * time.Second}

// settle is longer than a dead VID stays in use.
const settle = 600 * time.Millisecond

func TestPairsAreMovedOffADeadVIDAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		time.Sleep(3 * time.Second)
		n.expectVIDs(t, 1)
		if moved := n.moves.take(); len(moved) != 0 {
			t.Errorf("moved without cause: %v", moved)
		}
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		n.expectVIDs(t, 2)
		if moved := n.moves.take(); len(moved) != 8 {
			t.Errorf("%d moves, want one by each end of the 4 pairs between the leaves: %v", len(moved), moved)
		}
		for _, p := range ds[0].Paths() {
			if dead := p.VID == 1 && p.Node >= 2; (p.State == control.PathDown) != dead || p.Used != (p.VID == 2) == (p.Node >= 2) {
				t.Errorf("node 0 says %+v", p)
			}
		}
		if tagged := n.tables[0].Route(n.eps[2].MAC(0)).Tagged; !tagged {
			t.Error("untagged")
		}
		n.cables[0][0].SetUp(true)
		time.Sleep(watched.WaitToRestore / 2)
		n.expectVIDs(t, 2)
		time.Sleep(2 * watched.WaitToRestore)
		n.expectVIDs(t, 1)
		for _, m := range n.moves.take() {
			if !m.Drained || m.Err != nil {
				t.Errorf("taken back: %+v, want it behind a fence", m)
			}
		}
		if tag := n.tables[0].Route(n.eps[2].MAC(0)).Tag; tag != (transport.Tag{VID: 1, PCP: 2}) {
			t.Errorf("the route is %v, want what it was", tag)
		}
	})
}

// A program that pushes records sees a delay while a cable is cut, another one, and then the first
// again: each record arrives once, in order. Without failover it hangs.
func TestAProgramSeesAtMostADelay(t *testing.T) {
	for _, with := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			if with {
				n.watch(t)
			}
			time.Sleep(time.Second)
			longest, err := push(t, n.eps[0], n.eps[3], 4000, time.Millisecond, func(i int) {
				switch i {
				case 500, 3000:
					n.cables[0][0].SetUp(false)
				case 1500:
					n.cables[0][0].SetUp(true)
				case 2000:
					n.cables[1][1].SetUp(false)
				case 2500:
					n.cables[1][1].SetUp(true)
				}
			})
			switch {
			case with && (err != nil || longest > 200*time.Millisecond):
				t.Errorf("%v; the longest delay was %v, want 200 ms at most", err, longest)
			case !with && err == nil:
				t.Errorf("without failover all went well, though VID 1 was cut: this test shows nothing")
			}
		})
	}
}

// push pushes records from one node to another, paced, and returns the longest time between two
// that arrived.
func push(
	t *testing.T, from, to *mcd.Endpoint, records int, pace time.Duration, at func(i int),
) (longest time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var ds []*memfifo.Domain
	for _, ep := range []*mcd.Endpoint{from, to} {
		d, err := memfifo.Open(ep, memfifo.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ds = append(ds, d)
	}
	f, err := ds[1].NewFIFO(1, make([]byte, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		remote := ds[0].Remote(f.Key())
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := range records {
			at(i)
			if err := remote.Push(ctx, binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
				sent <- fmt.Errorf("record %d: %w", i, err)
				return
			}
			<-tick.C
		}
		sent <- nil
	}()
	b := make([]byte, 100)
	last := time.Now()
	for i := range records {
		size, err := f.Pop(ctx, b)
		if err != nil {
			return longest, fmt.Errorf("record %d: %w (%w)", i, err, <-sent)
		}
		if got := binary.BigEndian.Uint32(b[:size]); got != uint32(i) {
			t.Errorf("record %d came as the %d-th", got, i)
		}
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	return longest, <-sent
}

// A program changes a route of its own accord: that is what the pair prefers from then on. If it is
// dead, the pair stays where it is.
func TestTheProgramsOwnChangesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(time.Second)
		to := func(vid transport.VID) {
			for _, ends := range [][2]int{{0, 3}, {3, 0}} {
				if err := n.tables[ends[0]].Set(vlan.Route{Dst: n.eps[ends[1]].MAC(0), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(settle)
		}
		to(2)
		time.Sleep(10 * time.Second)
		if n.vid(0, 3) != 2 || n.vid(3, 0) != 2 || n.vid(0, 2) != 1 {
			t.Errorf("VIDs %d, %d and %d, want 2, 2 and 1", n.vid(0, 3), n.vid(3, 0), n.vid(0, 2))
		}
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		to(1) // which is dead
		n.expectVIDs(t, 2)
		n.cables[0][0].SetUp(true)
		time.Sleep(3 * watched.WaitToRestore)
		n.expectVIDs(t, 1)
	})
}

// A driver that is closed moves nothing any more.
func TestSetLinkAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		time.Sleep(time.Second)
		for _, d := range ds {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			d.SetLink(false, 1)
		}
		n.expectVIDs(t, 1)
	})
}

// A driver that watches other paths next begins with the preferred routes.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		time.Sleep(time.Second)
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		n.expectVIDs(t, 2)
		for _, d := range ds {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		n.expectVIDs(t, 2)
		for _, d := range ds {
			if err := d.Restore(); err != nil {
				t.Error(err)
			}
		}
		n.expectVIDs(t, 1)
	})
}

// counting is routes that count how often one was overridden.
type counting struct {
	failover.Routes
	overrides *atomic.Int32
}

func (r counting) Override(peer transport.MAC, vid transport.VID, reason string) error {
	r.overrides.Add(1)
	return r.Routes.Override(peer, vid, reason)
}

// All routes are changed at once, and the ends notice one after the other: none takes the other
// one's for a failover.
func TestAPlannedChangeOverridesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var overrides atomic.Int32
		for k, ep := range n.eps {
			d, err := failover.Start(ep, failover.Config{Failover: watched, Routes: counting{failover.Table(n.tables[k]), &overrides}})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			time.Sleep(7 * time.Millisecond)
		}
		for _, vid := range []transport.VID{2, 1, 2} {
			time.Sleep(time.Second)
			for _, table := range n.tables {
				if err := table.Set(vlan.Route{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Second)
			if n.vid(0, 3) != vid || n.vid(3, 0) != vid || overrides.Load() != 0 {
				t.Errorf("VIDs %d and %d, want %d; %d routes were overridden", n.vid(0, 3), n.vid(3, 0), vid, overrides.Load())
			}
		}
	})
}

// What is known by other means need not be missed first.
func TestSetLinkMovesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		time.Sleep(time.Second)
		n.cables[0][0].SetUp(false)
		ds[0].SetLink(false, 1)
		synctest.Wait()
		if n.vid(0, 2) != 2 || n.vid(2, 0) != 2 {
			t.Errorf("VIDs %d and %d, want 2 at both ends at once", n.vid(0, 2), n.vid(2, 0))
		}
	})
}

func TestStartChecksItsArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		routes := failover.Table(n.tables[0])
		for _, c := range []struct {
			cfg  failover.Config
			text string
		}{
			{failover.Config{Failover: watched}, "Config.Routes is nil"},
			{failover.Config{Failover: watched, Routes: routes, NIC: 1}, "Config.NIC 1: the endpoint has 1"},
			{failover.Config{Failover: watched, Routes: routes, PCP: 8}, "PCP: bad VLAN tag"},
			{failover.Config{Routes: routes}, "0 VIDs"},
		} {
			if _, err := failover.Start(n.eps[0], c.cfg); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		}
	})
}

var errRefused = errors.New("refused")

// refusing is routes that cannot be changed.
type refusing struct{ failover.Routes }

func (refusing) Override(transport.MAC, transport.VID, string) error { return errRefused }
func (refusing) Restore(transport.MAC, string) error                 { return errRefused }

func TestMovesThatFailAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		d, err := failover.Start(n.eps[0], failover.Config{Failover: watched, Routes: refusing{failover.Table(n.tables[0])}, OnMove: n.moves.add})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		time.Sleep(time.Second)
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		moved := n.moves.take()
		if len(moved) == 0 || !errors.Is(moved[0].Err, errRefused) || moved[0].String() != "node 2: VID 1 -> VID 2: no answer (refused)" && moved[0].String() != "node 3: VID 1 -> VID 2: no answer (refused)" {
			t.Errorf("%v", moved)
		}
	})
}

// Probes have the priority that was set last.
func TestProbesHaveTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		var mu sync.Mutex
		seen := make(map[transport.PCP]bool) // of node 0's probes
		defer n.eps[2].WatchProbes(func(p *mcd.Probe) {
			mu.Lock()
			defer mu.Unlock()
			if !p.Reply && p.From == 0 {
				seen[p.SentTag.Tag.PCP] = true
			}
		})()
		expect := func(want transport.PCP) {
			t.Helper()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			if !seen[want] || len(seen) != 1 {
				t.Errorf("probes of PCPs %v, want %d alone", seen, want)
			}
			clear(seen)
		}
		expect(0)
		if err := ds[0].SetPCP(5); err != nil {
			t.Fatal(err)
		}
		expect(5)
		if err := ds[0].SetPCP(8); err == nil {
			t.Error("a priority of 8 was taken")
		}
		expect(5)
		if moved := n.moves.take(); len(moved) != 0 {
			t.Errorf("moved without cause: %v", moved)
		}
	})
}
