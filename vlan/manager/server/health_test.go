package server

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Health tells what keeps the manager from its work, and what the network does apart from that.
func TestHealthSaysWhatIsWrong(t *testing.T) {
	s := testServer(t, filepath.Join(t.TempDir(), "state"))
	defer s.Close()
	health := func() (h api.Health) {
		t.Helper()
		_, answer := post(t, s, "GET /v1/health", "")
		if err := json.Unmarshal([]byte(answer), &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := health(); !h.OK || h.Failover || h.Why != "" {
		t.Errorf("%+v", h)
	}
	b, c := transport.MAC{2, 0, 0, 0, 0, 2}, transport.MAC{2, 0, 0, 0, 0, 3}
	s.ShowFailover(func() api.Failover {
		return api.Failover{Watching: true, Paths: []api.Path{
			{Peer: b, VID: 1, State: "down"}, {Peer: b, VID: 2, State: "down"}, {Peer: c, VID: 1, State: "up"}, {Peer: c, VID: 2, State: "down"}}}
	})
	if h := health(); !h.OK || !h.Failover || h.PathsDown != 3 || len(h.Unreachable) != 1 || h.Unreachable[0] != b.String() {
		t.Errorf("with paths that are down: %+v", h)
	}
	_, text := post(t, s, "GET /metrics", "")
	for _, want := range []string{`rawlane_path_up{peer="02:00:00:00:00:03",node="",vid="1"} 1`, `rawlane_path_up{peer="02:00:00:00:00:03",node="",vid="2"} 0`,
		"rawlane_paths_down 3", "rawlane_nodes_unreachable 1", "rawlane_failover_watching 1"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	s.ShowFailover(func() api.Failover { return api.Failover{Error: "no such interface"} })
	if h := health(); h.OK || h.Why != "failover: no such interface" {
		t.Errorf("with a failover that cannot watch: %+v", h)
	}
	s.ShowFailover(nil)
	s.OnStep(func(step string) error { return errors.New("disk full") })
	if status, _ := post(t, s, "/v1/reset", ""); status == 200 {
		t.Error("the change was made")
	}
	if h := health(); h.OK || !strings.Contains(h.Why, "disk full") {
		t.Errorf("with a full disk: %+v", h)
	}
	s.OnStep(nil)
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 {
		t.Error(answer)
	}
	if h := health(); !h.OK {
		t.Errorf("with room again: %+v", h)
	}
	if _, text := post(t, s, "GET /metrics", ""); !strings.Contains(text, "rawlane_state_writes_failed_total 1\n") {
		t.Errorf("failed writes are not counted:\n%s", text)
	}
}

// The end of a commit's write does not hide that another one has failed meanwhile.
func TestHealthKeepsTheErrorOfALaterWrite(t *testing.T) {
	s := testServer(t, filepath.Join(t.TempDir(), "state"))
	defer s.Close()
	isOK := func() bool {
		t.Helper()
		var h api.Health
		_, answer := post(t, s, "GET /v1/health", "")
		if err := json.Unmarshal([]byte(answer), &h); err != nil {
			t.Fatal(err)
		}
		return h.OK
	}
	st, err := s.next(nil, func(*state) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.file.stage(st); err != nil {
		t.Fatal(err)
	}
	first, err := s.publish(st, actPlan, "", "") // as a commit does, which then waits for programs
	if err != nil {
		t.Fatal(err)
	}
	s.OnStep(func(string) error { return errors.New("disk full") })
	if status, _ := post(t, s, "/v1/reset", ""); status == 200 {
		t.Error("the second change was made")
	}
	s.OnStep(nil)
	if s.fsync(&first); first.Warning != "" || isOK() {
		t.Errorf("health is %v behind a write that failed (%s)", isOK(), first.Warning)
	}
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 || !isOK() {
		t.Errorf("with room again: %s, health %v", answer, isOK())
	}
}

// Health names some of the nodes that cannot be reached; the metric counts all.
func TestAllUnreachableNodesCount(t *testing.T) {
	s := testServer(t, filepath.Join(t.TempDir(), "state"))
	defer s.Close()
	s.ShowFailover(func() (f api.Failover) {
		for k := range byte(api.MaxShown + 36) {
			f.Paths = append(f.Paths, api.Path{Peer: transport.MAC{2, 0, 0, 0, 1, k}, VID: 1, State: api.PathDown})
		}
		return f
	})
	var h api.Health
	_, answer := post(t, s, "GET /v1/health", "")
	if err := json.Unmarshal([]byte(answer), &h); err != nil || len(h.Unreachable) != api.MaxShown {
		t.Errorf("%d nodes are named, %v; want %d", len(h.Unreachable), err, api.MaxShown)
	}
	if _, text := post(t, s, "GET /metrics", ""); !strings.Contains(text, "rawlane_nodes_unreachable 100\n") {
		t.Errorf("no rawlane_nodes_unreachable 100 in\n%s", text)
	}
}
