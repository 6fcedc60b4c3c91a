package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Two nodes, of which the first sends by its manager's routes, in a network where VID 1 is slow and
// VID 2 is not. If the route changes in between, the last message arrives first; behind a drain it
// does not. Without a drain the first message is held for longer than the test runs, so that a busy
// machine cannot make it arrive first.
func TestVFREC_4_3_MessagesOvertakeEachOtherUnlessDrained(t *testing.T) {
	for _, by := range []string{"the program", "another"} {
		for _, drained := range []bool{false, true} {
			t.Run(fmt.Sprintf("changed by %s, drained %v", by, drained), func(t *testing.T) {
				delay := time.Minute
				if drained {
					delay = 100 * time.Millisecond
				}
				s, from, to, n := slowPath(t, delay)
				if drained {
					s.DrainWith(mcd.AddressDrain{Endpoint: from.Endpoint()})
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := from.Send(ctx, to.Addr(), []byte("first, by VID 1")); err != nil {
					t.Fatal(err)
				}
				change := api.Change{A: s.MAC(), B: to.Endpoint().MAC(0), VID: 2}
				var err error
				if by == "the program" {
					err = s.SetRoutes(ctx, change)
				} else {
					_, err = n.Client.SetPairs(ctx, []api.Change{change}, "", 0)
				}
				if err != nil {
					t.Fatal(err)
				}
				managertest.Eventually(t, "the change", func() bool { tag := s.Table().Route(change.B).Tag; return tag.VID == 2 })
				if err := from.Send(ctx, to.Addr(), []byte("second, by VID 2")); err != nil {
					t.Fatal(err)
				}
				b := make([]byte, 100)
				k, _, err := to.Recv(ctx, b)
				if err != nil {
					t.Fatal(err)
				}
				if overtaken := string(b[:k]) == "second, by VID 2"; overtaken == drained {
					t.Errorf("%q came first", b[:k])
				}
				if u := s.Stats().Undrained; u != 0 {
					t.Errorf("%d changes were not drained", u)
				}
			})
		}
	}
}

// slowPath opens two nodes between which frames of VID 1 are delayed, and returns the first one's
// session, and a port of each.
func slowPath(t *testing.T, delay time.Duration) (s *manager.Session, from, to *mcd.Port, n *managertest.Node) {
	t.Helper()
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := plan.RoundRobin([]transport.MAC{links[0].MAC(), links[1].MAC()}, []transport.VID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	n = managertest.StartAt(t, links[0].MAC(), plan, t.TempDir())
	s = n.Dial(t, manager.Dialer{DrainTimeout: 10 * time.Second})
	slow, err := fault.New(links[1], rand.New(rand.NewPCG(1, 1)), fault.Config{Delay: 1, DelayMin: delay, DelayMax: delay,
		Match: func(f *transport.Frame) bool { return f.Tagged && f.Tag.VID == 1 }})
	if err != nil {
		t.Fatal(err)
	}
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	var ports []*mcd.Port
	for k, cfg := range []mcd.Config{{Router: s.Table()}, {Node: 1, Router: mustFix(t, 2)}} {
		cfg.Nodes = table
		e, err := mcd.Open(cfg, []transport.Link{links[0], slow}[k])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		p, err := e.OpenPort(1, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, p)
	}
	return s, ports[0], ports[1], n
}

func mustFix(t *testing.T, vid transport.VID) vlan.Router {
	t.Helper()
	r, err := vlan.Fixed(transport.Tag{VID: vid})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
