package barrier_test

import (
	"context"
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
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// consenting are three nodes. Those that make no group yet, or have left it, are asked who is gone;
// what they have said then does not keep all from meeting.
func consenting(t *testing.T, program func(n *processes)) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(t, 3)
		n.cfg = barrier.GroupConfig{Algorithm: schedule.Concurrent()}
		defer n.close()
		program(n)
		stages(t, n.groups, 5, func(k, _ int) { time.Sleep(time.Duration(k) * time.Millisecond) })
	})
}

// ask has a node ask another one of a group, as one of its members did that has ended since.
func (n *processes) ask(from, to int, id engine.Identity, gone int) {
	n.t.Helper()
	port, err := n.eps[from].OpenPort(99, mcd.PortOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	defer port.Close()
	m := engine.Message{Kind: engine.Report, Identity: id, Generation: 1, Incarnation: 99, Report: &agreement.Report{
		Query: true, Version: 1, Gone: []agreement.Gone{{Rank: gone, Reason: agreement.Left}},
	}}
	if err := port.TrySend(0, mcd.To(mcd.Addr{Node: mcd.NodeID(to), Port: barrier.DefaultPort}), m.Append(nil)); err != nil {
		n.t.Fatal(err)
	}
	synctest.Wait()
}

// identityOf returns the identity of a first group of three nodes.
func identityOf(t *testing.T, cfg barrier.GroupConfig) engine.Identity {
	var id atomic.Pointer[engine.Identity]
	eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	s := service(t, eps[1], barrier.Config{})
	defer s.Close()
	_, err := eps[0].OpenPort(barrier.DefaultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		for i := range batch {
			var m engine.Message
			if engine.Parse(batch[i].Payload, &m) == nil {
				id.Store(&m.Identity)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	g := group(t, s, cfg)
	defer g.Close()
	arrive(t, g, barrier.Options{})
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	return *id.Load()
}

// Two processes of a group die and begin anew. The survivor asks one of them, which has not made its
// group yet, about the other; to the survivor, its answer says that it has begun anew.
func TestConsent_OfANewcomer(t *testing.T) {
	consenting(t, func(n *processes) {
		for k := range 3 {
			n.begin(k)
		}
		stages(n.t, n.groups, 3, func(int, int) {})
		_ = n.eps[1].Close()
		arrive(n.t, n.groups[2], barrier.Options{})
		lost := arrive(n.t, n.groups[0], barrier.Options{})
		time.Sleep(1900 * time.Millisecond)
		_ = n.eps[2].Close()
		n.open(2)
		if err := lost.Wait(limit(n.t)); !errors.Is(err, barrier.ErrNodeDown) {
			n.t.Fatal(err)
		}
		n.anew(0)
		n.begin(1)
		n.groups[2] = group(n.t, n.services[2], n.cfg)
	})
}

// The node that asked begins anew, with the one that it asked about, before the third one makes its
// group.
func TestConsent_OfAFormerJob(t *testing.T) {
	consenting(t, func(n *processes) {
		n.open(2)
		n.begin(0)
		n.begin(1)
		lost := arrive(n.t, n.groups[0], barrier.Options{})
		time.Sleep(20 * time.Millisecond)
		_ = n.eps[1].Close()
		if err := lost.Wait(limit(n.t)); !errors.Is(err, barrier.ErrNodeDown) {
			n.t.Fatal(err)
		}
		_ = n.eps[0].Close()
		n.begin(0)
		n.begin(1)
		time.Sleep(100 * time.Millisecond)
		n.groups[2] = group(n.t, n.services[2], n.cfg)
	})
}

// Two nodes are at the second epoch of a group. One of them, which has rejoined there, is asked about
// the first, and so is the third one, which makes its group last.
func TestConsent_ToAFormerEpoch(t *testing.T) {
	consenting(t, func(n *processes) {
		first := identityOf(n.t, n.cfg)
		for k := range 3 {
			n.begin(k)
		}
		stages(n.t, n.groups, 2, func(int, int) {})
		_ = n.eps[1].Close()
		_ = n.eps[2].Close()
		if err := n.groups[0].Barrier(limit(n.t)); !errors.Is(err, barrier.ErrNodeDown) {
			n.t.Fatal(err)
		}
		n.anew(0)
		n.begin(1)
		n.open(2)
		meets := arrive(n.t, n.groups[0], barrier.Options{})
		meetsToo := arrive(n.t, n.groups[1], barrier.Options{})
		time.Sleep(50 * time.Millisecond) // node 1 rejoins
		n.ask(0, 1, first, 2)
		n.ask(1, 2, first, 0)
		n.groups[2] = group(n.t, n.services[2], n.cfg)
		for k, err := range []error{n.groups[2].Barrier(limit(n.t)), meets.Wait(limit(n.t)), meetsToo.Wait(limit(n.t))} {
			if err != nil {
				n.t.Errorf("%d: %v", k, err)
			}
		}
	})
}

// A node that is no member says that a member is gone, to one that has not made the group yet.
func TestConsent_ToAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTable(t, 4)
		n.cfg = barrier.GroupConfig{Members: barrier.MaskOf(0, 1, 2), Algorithm: schedule.Concurrent()}
		defer n.close()
		n.open(2)
		n.open(3)
		n.ask(3, 2, identityOf(t, n.cfg), 1)
		n.begin(0)
		n.begin(1)
		n.groups[2] = group(t, n.services[2], n.cfg)
		stages(t, n.groups[:3], 3, func(int, int) {})
	})
}

// Processes die and begin anew, and make their groups late; who is told that others are down closes
// the group and makes it anew. Once nobody dies any more all meet.
func TestAnew(t *testing.T) {
	const storm = 20 * time.Second
	lives.Run(t, lives.Programs{Seeds: 40, Short: 4, MaxSize: 5, PeerTimeout: time.Second}, func(p *lives.Program) {
		end, stop := context.WithTimeout(p.T.Context(), storm+2*time.Minute)
		defer stop()
		m := &anew{Program: p, storm: time.Now().Add(storm), met: make([]int, p.Size), stop: stop}
		if p.Rand(2).IntN(2) == 0 {
			m.cfg.Algorithm = schedule.Concurrent()
		}
		m.cfg.PeerTimeout = time.Second
		var all sync.WaitGroup
		for k := range p.Size {
			all.Go(func() {
				for life := uint64(0); end.Err() == nil; life++ {
					m.live(end, k, life)
				}
			})
		}
		all.Wait()
		if !m.meet {
			p.Fail("%d nodes have met so often in a row since nobody dies: %v", p.Size, m.met)
		}
	})
}

// enough is how often all meet, to show that they go on.
const enough = 5

// anew is a program of TestAnew.
type anew struct {
	*lives.Program
	cfg   barrier.GroupConfig
	storm time.Time // until then processes die
	stop  func()    // of the program

	mu   sync.Mutex
	met  []int // by node, since the storm: barriers in a row
	meet bool  // all have met often enough
}

// note notes how a barrier of a node has ended.
func (m *anew) note(k int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.met[k]++; !m.meet && (err != nil || time.Now().Before(m.storm)) {
		m.met[k] = 0
	}
	if slices.Min(m.met) > enough {
		m.meet = true
		m.stop()
	}
}

// live is one life of a node.
func (m *anew) live(end context.Context, k int, life uint64) {
	rng := m.Rand(100 + 100*uint64(k) + life)
	ep, err := m.Begin(k)
	if err != nil {
		m.T.Error(err)
		return
	}
	s := service(m.T, ep, barrier.Config{})
	ctx, die := context.WithCancel(end)
	defer die()
	if after := lives.Between(rng, 0, 20*time.Second); after < time.Until(m.storm) {
		time.AfterFunc(after, func() { m.Kill(k); die() })
	}
	if rng.IntN(2) == 0 { // it makes its group late
		sleep(ctx, lives.Between(rng, 0, 3*time.Second))
	}
	for ctx.Err() == nil {
		g, err := s.Group(m.cfg)
		for err == nil {
			sleep(ctx, lives.Between(rng, 0, time.Second/2))
			err = g.Barrier(ctx)
			m.note(k, err)
		}
		if g != nil {
			_ = g.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = s.Close()
	m.Kill(k)
	_ = ep.Close()
	time.Sleep(lives.Between(rng, 0, 2*time.Second))
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
