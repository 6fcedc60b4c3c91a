package coordinator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// watchedPaths are the paths of node 0 to nodes 1 and 2 by VIDs 1 and 2, as a failover tells of them.
func watchedPaths(states ...string) func() api.Failover {
	return func() api.Failover {
		f := api.Failover{Watching: true}
		for i, state := range states {
			peer, vid := 1+i/2, transport.VID(1+i%2)
			down := states[i-i%2] == api.PathDown
			f.Paths = append(f.Paths, api.Path{
				Peer: managertest.MAC(peer), VID: vid, State: state, Used: (vid == 1) != down, Preferred: vid == 1,
			})
		}
		return f
	}
}

// A controller is told which paths no pair must be put on, and which pairs a failover has moved; of
// nodes whose paths are all up nothing is asked.
func TestControlIsToldOfFailovers(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	for _, c := range []struct {
		states []string
		down   []control.DownPath
		moved  []int
	}{
		{[]string{api.PathUp, api.PathSuspect, api.PathUp, api.PathUp}, nil, nil},
		{[]string{api.PathUp, api.PathUp, api.PathDown, api.PathUp}, []control.DownPath{{Node: 2, VID: 1}}, []int{2}},
		{[]string{api.PathUp, api.PathWaitToRestore, api.PathUp, api.PathUp}, []control.DownPath{{Node: 1, VID: 2}}, nil},
	} {
		all[0].ShowFailover(watchedPaths(c.states...))
		s, err := coordinator.SampleOf(t.Context(), clients[0], all[0].Plan())
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(s.Down, s.Moved) != fmt.Sprint(c.down, c.moved) {
			t.Errorf("%v: down %v, moved %v; want %v, %v", c.states, s.Down, s.Moved, c.down, c.moved)
		}
	}
}

// A survey names a default VID that does not reach all, or that a failover has replaced: no program
// would find its nodes by it.
func TestSurveyNamesADeadDefaultVID(t *testing.T) {
	all, clients := managertest.StartAll(t, 3, 2)
	planned := all[0].Plan().Nodes[0].VID
	for _, to := range []transport.VID{1, 2} {
		all[0].ShowFailover(watchedPaths(api.PathUp, api.PathUp, api.PathDown, api.PathUp))
		want := ": paths down: 1, default VID 1 does not reach " + all[0].Plan().Nodes[2].Name
		if to != planned {
			if err := all[0].Override("no answer", api.Change{A: managertest.MAC(0), B: transport.Broadcast, VID: to}); err != nil {
				t.Fatal(err)
			}
			want = fmt.Sprintf(": paths down: 1, default VID %d: groups and all go by VID %d", planned, to)
		}
		s := coordinator.Survey(t.Context(), clients[:1])
		if err := s.Err(); !errors.Is(err, coordinator.ErrUnwell) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
		if n := s.Nodes[0]; n.DefaultVID != to || n.Pairs != 0 {
			t.Errorf("%+v, want default VID %d, and no pair that is not by plan", n, to)
		}
	}
}
