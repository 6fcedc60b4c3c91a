package server

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// claims are what sessions have asked for, each with the version of its answer: what they come back
// with.
type claims map[string]api.SessionPair

// ask has a session ask for the VID of the pair with node 1.
func (c claims) ask(t *testing.T, s *Server, id string, vid transport.VID) {
	t.Helper()
	change := api.Change{A: s.cfg.MAC, B: transport.MAC{2, 0, 0, 0, 0, 2}, VID: vid}
	b, err := json.Marshal(map[string]any{"pairs": []api.Change{change}})
	if err != nil {
		t.Fatal(err)
	}
	status, text := post(t, s, "PATCH /v1/sessions/"+id+"/pairs", string(b))
	var answer api.Changed
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	c[id] = api.SessionPair{Change: change, Since: answer.Version}
}

// begin has sessions begin, with what they have asked for before.
func (c claims) begin(t *testing.T, s *Server, ids ...string) {
	t.Helper()
	for _, id := range ids {
		start := &api.SessionStart{Session: id}
		if p, ok := c[id]; ok {
			start.Pairs = append(start.Pairs, p)
		}
		if _, err := s.join(start, "", func() {}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Programs that ask while a failover's override is in force change no route. Whose claim is the
// latest shows when the override ends, or after a restart, in whichever order they come back.
func TestClaimsBelowAnOverrideKeepTheirOrder(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state")
			s := testServer(t, file)
			asked := make(claims)
			asked.begin(t, s, "a", "b")
			other := transport.MAC{2, 0, 0, 0, 0, 2}
			if err := s.Override("no answer", api.Change{A: s.cfg.MAC, B: other, VID: 1}); err != nil {
				t.Fatal(err)
			}
			asked.ask(t, s, "a", 1)
			asked.ask(t, s, "b", 2)
			expectVID(t, "before the restart", s, 2)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = testServer(t, file)
			defer s.Close()
			asked.begin(t, s, order...)
			expectVID(t, "after it", s, 2)
		})
	}
}

// What a program asks for while an operator's pairs are being written came later, and lies over
// them: then, and when the program comes back to a manager that was restarted.
func TestClaimsKeepTheirOrderBesideAWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := testServer(t, file)
	asked := make(claims)
	asked.begin(t, s, "a")
	s.OnStep(func(step string) error {
		if step == "sync" {
			asked.ask(t, s, "a", 2)
		}
		return nil
	})
	if status, answer := post(t, s, "PATCH /v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":1}]}`); status != 200 {
		t.Fatal(answer)
	}
	expectVID(t, "before the restart", s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = testServer(t, file)
	defer s.Close()
	asked.begin(t, s, "a")
	expectVID(t, "after it", s, 2)
}

// expectVID expects a VID to node 1, overrides apart.
func expectVID(t *testing.T, when string, s *Server, want transport.VID) {
	t.Helper()
	if _, vid := s.VIDs(transport.MAC{2, 0, 0, 0, 0, 2}); vid != want {
		t.Errorf("%s: VID %d, want %d", when, vid, want)
	}
}

// A pair that was taken back, and that the program has set again before it was told, is not told as
// gone with a later version: the program would forget what the manager has.
func TestAPairThatIsSetAgainIsNotToldAsDropped(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	asked := make(claims)
	asked.begin(t, s, "a", "b")
	asked.ask(t, s, "a", 2)
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 {
		t.Fatal(answer)
	}
	asked.ask(t, s, "a", 1)
	asked.ask(t, s, "b", 2) // a later version than that of a's answer
	a := s.sessions.all["a"]
	if got := len(s.rib.Of(a.number)); got != 1 {
		t.Fatalf("the manager has %d pairs of the session's, want 1", got)
	}
	for _, e := range s.drain(a, false) {
		if len(e.Dropped) > 0 {
			t.Errorf("version %v tells that %v is gone, which was set again at %v", e.Version, e.Dropped, asked["a"].Since)
		}
	}
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 {
		t.Fatal(answer)
	}
	if e := s.drain(a, false); len(e) != 1 || len(e[0].Dropped) != 1 {
		t.Errorf("a reset after that: %+v, want an event that tells of the pair", e)
	}
}
