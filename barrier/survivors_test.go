package barrier_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// muted makes a cluster in which some nodes can be muted: they hear all, and are heard by each other
// alone.
func muted(t *testing.T, size int, nodes ...mcd.NodeID) (c *cluster, mute *atomic.Bool) {
	mute = new(atomic.Bool)
	byMAC := map[transport.MAC]mcd.NodeID{}
	c = new(cluster).start(t, size, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			return &filter{l, func(f *transport.Frame) bool {
				return mute.Load() && slices.Contains(nodes, node) && !slices.Contains(nodes, byMAC[f.Dst])
			}}
		},
	})
	for _, e := range c.eps {
		byMAC[e.MAC(0)] = e.Node()
	}
	return c, mute
}

// A node dies; others hear all, and are not heard while they decide that it is down. The rest decides
// without them. In their own group of survivors they learn that, as the rest never makes it: not only
// by the end of their contexts. All can make a group anew.
func TestSurvivorsThatDecidedApart(t *testing.T) {
	for _, apart := range [][]mcd.NodeID{{1}, {1, 2}} {
		for _, closed := range []bool{false, true} { // the former groups, when the new ones wait
			synctest.Test(t, func(t *testing.T) { decideApart(t, apart, closed) })
		}
	}
}

func decideApart(t *testing.T, apart []mcd.NodeID, closed bool) {
	const size, dead = 6, 5
	c, mute := muted(t, size, apart...)
	cfg := barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second}
	all := c.groups(t, cfg)
	stages(t, all, 2, func(int, int) {})
	_ = c.eps[dead].Close()
	time.AfterFunc(900*time.Millisecond, func() { mute.Store(true) })
	var rest sync.WaitGroup
	rest.Add(dead - len(apart))
	groups := make([]*barrier.Group, dead)
	expectNone(t, each(all[:dead], func(k int, g *barrier.Group) (err error) {
		alone := slices.Contains(apart, mcd.NodeID(k))
		down := downOf(t, g.Barrier(limit(t)))
		want := append(slices.Clone(apart), dead)
		if alone {
			want = []mcd.NodeID{dead}
			rest.Wait()
		} else {
			rest.Done()
		}
		if !slices.Equal(down.Nodes, want) {
			t.Errorf("node %d was told %v, want nodes %v", k, down, want)
		}
		mute.Store(false)
		if groups[k], err = g.Without(); err != nil {
			groups[k] = g
			return err
		}
		if closed {
			_ = g.Close()
		}
		if !alone {
			return groups[k].Barrier(limit(t))
		}
		begun := time.Now()
		if down := downOf(t, groups[k].Barrier(limit(t))); !down.Excluded || !slices.Contains(down.Nodes, mcd.NodeID(k)) {
			t.Errorf("node %d waits for those that go on without it: %v", k, down)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("node %d learned that after %v", k, took)
		}
		for _, former := range []*barrier.Group{g, groups[k]} {
			if _, err := former.Without(); !errors.Is(err, barrier.ErrExcluded) {
				t.Errorf("node %d: without: %v, want ErrExcluded", k, err)
			}
		}
		return nil
	}))
	closeAll(append(groups, all[:dead]...))
	cfg.Members = barrier.MaskOf(0, 1, 2, 3, 4)
	for k := range groups {
		groups[k] = group(t, c.services[k], cfg)
	}
	stages(t, groups, 3, func(int, int) {})
	closeAll(groups)
}

// Two nodes decided without the rest. One of them makes the group of survivors, and leaves it at once. The
// other one does not take the rest's answer, that they have no such group, for their consent.
func TestSurvivorsThatDecidedApart_AndOneLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, mute := muted(t, 6, 1, 2)
		all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second})
		stages(t, all, 2, func(int, int) {})
		_ = c.eps[5].Close()
		time.AfterFunc(900*time.Millisecond, func() { mute.Store(true) })
		for k, err := range each(all[:5], func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
			want := []mcd.NodeID{1, 2, 5}
			if k == 1 || k == 2 {
				want = []mcd.NodeID{5}
			}
			if down := downOf(t, err); !slices.Equal(down.Nodes, want) {
				t.Errorf("node %d was told %v, want nodes %v", k, down, want)
			}
		}
		mute.Store(false)
		rest := make([]*barrier.Group, 3)
		for k := 1; k <= 2; k++ {
			var err error
			if rest[k], err = all[k].Without(); err != nil {
				t.Fatal(err)
			}
		}
		ticket := arrive(t, rest[1], barrier.Options{})
		synctest.Wait()
		_ = rest[2].Close()
		if down := downOf(t, ticket.Wait(limit(t))); !down.Excluded {
			t.Errorf("node 1 was told %v, want that it is excluded", down)
		}
	})
}

// A survivor that makes its group late is waited for, however often it says that it has none, as it
// has decided as the others have.
func TestSurvivorThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := muted(t, 4)
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
		_ = c.eps[3].Close()
		expectNone(t, each(all[:3], func(k int, g *barrier.Group) error {
			downOf(t, g.Barrier(limit(t)))
			if k == 1 {
				time.Sleep(10 * time.Second)
			}
			rest, err := g.Without()
			if err != nil {
				return err
			}
			return rest.Barrier(limit(t))
		}))
	})
}

// played is a node whose answers the test gives, until it is asked about a group of survivors.
type played struct {
	port    *mcd.Port
	former  engine.Identity // of the first message
	decided bool            // another node has
}

// play answers as a member does that is there, takes any set that it hears for its own until others have
// decided, and then turns out to be gone to some node, and has left no other group.
func (p *played) play(batch []mcd.Message, _ bool) {
	for i := range batch {
		var m engine.Message
		if engine.Parse(batch[i].Payload, &m) != nil {
			continue
		}
		if p.former == (engine.Identity{}) {
			p.former = m.Identity
		}
		answer := engine.Message{Identity: m.Identity, Number: m.Number, Label: m.Label, Generation: m.Generation,
			Algorithm: m.Algorithm, Incarnation: 99}
		switch {
		case m.Identity != p.former:
			answer.Kind, answer.Answers, answer.Heard, answer.Incarnation = engine.NoSuchGroup, m.Kind, m.Heard, 0
		case m.Kind == engine.Nack:
			answer.Kind = engine.NotYet
			answer.Own = m.Generation - 1
		case m.Kind == engine.Report:
			p.decided = p.decided || m.Report.Decided
			answer.Kind = engine.Report
			answer.Report = &agreement.Report{Gone: m.Report.Gone, Version: 1, Echo: m.Incarnation}
			if p.decided {
				answer.Report.Gone = []agreement.Gone{{Rank: 2, Reason: agreement.Silent}, {Rank: 3, Reason: agreement.Silent}}
			}
		default:
			continue
		}
		_ = p.port.TrySend(0, mcd.To(batch[i].From), answer.Append(nil))
	}
}

// One of three survivors has learned that it is gone, to somebody who was mistaken; all others have
// decided otherwise. They wait for it in their group, and are told that it does not come.
func TestSurvivorThatIsExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 4, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		p := new(played)
		var err error
		if p.port, err = eps[2].OpenPort(barrier.DefaultPort, mcd.PortOptions{Receive: p.play}); err != nil {
			t.Fatal(err)
		}
		c := &cluster{eps: eps[:2]}
		for _, e := range c.eps {
			c.services = append(c.services, service(t, e, barrier.Config{}))
		}
		t.Cleanup(func() { closeAll(c.services) })
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second, Algorithm: parse(t, "shuffle")})
		_ = eps[3].Close()
		expectNone(t, each(all, func(k int, g *barrier.Group) error {
			if down := downOf(t, g.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{3}) {
				t.Errorf("node %d: %v, want node 3 to be down", k, down)
			}
			rest, err := g.Without()
			if err != nil {
				return err
			}
			begun := time.Now()
			if down := downOf(t, rest.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{2}) || time.Since(begun) > time.Second {
				t.Errorf("node %d, after %v: %v, want node 2 to be down", k, time.Since(begun), down)
			}
			if rest, err = rest.Without(); err != nil {
				return err
			}
			return rest.Barrier(limit(t))
		}))
	})
}

// More members than a report names are gone. Each survivor decides alone, and may know of fewer than
// others, as it heard a report that names 400. Groups of survivors fail until they know of all, and
// then they go on together.
func TestMoreAreGoneThanAReportNames(t *testing.T) {
	sizes := []int{agreement.MaxGone + 1, agreement.MaxGone, agreement.MaxGone + 50}
	if testing.Short() { // with the race detector
		sizes = sizes[:1]
	}
	for _, gone := range sizes {
		failed := manyGone(t, gone, []int{0, gone/2 + 2, gone + 2}, 300*time.Millisecond)
		if t.Logf("%d gone: %d barriers failed at 3 survivors", gone, failed); gone <= agreement.MaxGone && failed != 3 {
			t.Error("a report names them all, and survivors disagreed")
		}
	}
}

// Some survivors know of one more that is gone than the others, and their group is not the others'.
// In that of the others nobody awaits it but those that are not there: it is found all the same.
func TestMoreAreGoneThanAReportNames_AndAreAwaitedByNobody(t *testing.T) {
	alive := make([]int, 20)
	for k := range alive {
		alive[k] = k
	}
	manyGone(t, agreement.MaxGone+1, alive, 0)
}

// manyGone makes survivors of a group, each of which enters a barrier so much later than the node below
// it, and as many others that never begin. It returns how many barriers fail.
func manyGone(t *testing.T, gone int, alive []int, apart time.Duration) (failed int64) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(t, gone+len(alive))
		defer n.close()
		n.cfg.Algorithm = parse(t, "shuffle")
		var groups []*barrier.Group
		for _, k := range alive {
			n.begin(k)
			groups = append(groups, n.groups[k])
		}
		failed = meet(t, groups, apart)
	})
	return failed
}

// meet has survivors enter barriers, and go on without those that are gone, until none is. It returns how
// many barriers fail.
func meet(t *testing.T, survivors []*barrier.Group, apart time.Duration) int64 {
	t.Helper()
	var failed atomic.Int64
	var alive []mcd.NodeID
	for _, g := range survivors {
		alive = append(alive, g.Members()[g.Rank()])
	}
	expectNone(t, each(survivors, func(k int, g *barrier.Group) error {
		for {
			time.Sleep(time.Duration(k) * apart)
			err := g.Barrier(limit(t))
			if err == nil {
				break
			}
			for _, n := range downOf(t, err).Nodes {
				if slices.Contains(alive, n) {
					return err
				}
			}
			if failed.Add(1) > int64(4*len(alive)) {
				return err
			}
			former := g
			if g, err = g.Without(); err != nil {
				return err
			}
			_ = former.Close()
		}
		if !slices.Equal(g.Members(), alive) {
			t.Errorf("%v are alive: survivor %d goes on with %v", alive, k, g.Members())
		}
		return nil
	}))
	return failed.Load()
}
