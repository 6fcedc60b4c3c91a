package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// logged is a log that is read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// Two managers on two switches, with a cable for each VID between these: they move their pair off the one that is cut; and follow their
// plan when it is another one.
func TestManagersWatchThePaths(t *testing.T) {
	synctest.Test(t, managersWatchThePaths)
}

func managersWatchThePaths(t *testing.T) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	left, right := f.AddSwitch("left"), f.AddSwitch("right")
	var cables []*fabric.Cable
	for vid := transport.VID(1); vid <= 3; vid++ {
		c, err := f.Connect(left, right, fabric.Trunk(vid))
		if err != nil {
			t.Fatal(err)
		}
		cables = append(cables, c)
	}
	macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	plan := func(vids ...transport.VID) *vlan.Plan {
		p := &vlan.Plan{VIDs: vids}
		for k, mac := range macs {
			p.Nodes = append(p.Nodes, vlan.Station{Name: fmt.Sprint("n", k), MAC: mac, VID: vids[0]})
		}
		return p
	}
	var log logged
	var servers []*manager.Server
	for k, sw := range []*fabric.Switch{left, right} {
		s, err := manager.NewServer(manager.Config{MAC: macs[k], Plan: plan(1, 2)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
		open := func() (transport.Link, error) { return f.Attach(sw, fabric.Station{MAC: macs[k]}) }
		w := newPathWatch(s, macs[k], open, vlan.FailoverConfig{Probe: 20 * time.Millisecond}, slog.New(slog.NewTextHandler(&log, nil)))
		defer w.close()
	}
	expect := func(what string, vid transport.VID) {
		t.Helper()
		time.Sleep(5 * time.Second)
		for k, s := range servers {
			routes, _ := s.Routes()
			if !slices.ContainsFunc(routes, func(r vlan.Route) bool { return r.Dst == macs[1-k] && r.Tag.VID == vid }) {
				t.Errorf("%s: manager %d has %v, want VID %d", what, k, routes, vid)
			}
		}
	}
	expect("planned", 1)
	cables[0].SetUp(false)
	expect("VID 1 was cut", 2)
	for _, s := range servers {
		if _, err := s.SetPlan(plan(2, 3), ""); err != nil {
			t.Fatal(err)
		}
	}
	expect("planned anew", 2)
	cables[1].SetUp(false)
	expect("VID 2 was cut", 3)
	if n := log.count("watching the paths"); n != 4 {
		t.Errorf("the watch began %d times, want once for each manager and plan", n)
	}
	if log.count("failover") < 4 {
		t.Errorf("%d moves were logged, want each end's twice", log.count("failover"))
	}
}
