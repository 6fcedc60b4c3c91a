package server

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A manager with a failover has the overrides of before its restart; one without has none, and
// neither has one whose file is broken or of another plan.
func TestOverridesSurviveARestart(t *testing.T) {
	self, b, c := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}, transport.MAC{2, 0, 0, 0, 0, 3}
	p := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for _, m := range []transport.MAC{self, b, c} {
		p.Nodes = append(p.Nodes, plan.Node{MAC: m, VID: 1})
	}
	file := filepath.Join(t.TempDir(), "state")
	start := func(keep bool) *Server {
		t.Helper()
		s, err := New(Config{MAC: self, Plan: p, State: file, KeepOverrides: keep})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	expect := func(when string, s *Server, vids ...transport.VID) {
		t.Helper()
		for i, dst := range []transport.MAC{b, c} {
			if now, preferred := s.VIDs(dst); now != vids[i] || preferred != 1 {
				t.Errorf("%s: VIDs %d and %d to node %d, want %d and 1", when, now, preferred, i+1, vids[i])
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := start(true)
	for _, dst := range []transport.MAC{b, c} {
		if err := s.Override("no answer", api.Change{A: self, B: dst, VID: 2}); err != nil {
			t.Fatal(err)
		}
	}
	s.Restore("has held", b)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // it is written behind the change
		if kept := keptIn(t, file); len(kept) == 1 || time.Now().After(deadline) {
			break
		}
	}
	expect("at first", s, 1, 2)
	s = start(true)
	if of := s.rib.Of(rib.Failover); len(of) != 1 || of[0].Reason != "no answer" {
		t.Errorf("%+v", of)
	}
	expect("after a restart", s, 1, 2)
	expect("without failover", start(false), 1, 1)
	if _, err := os.Stat(file + ".overrides"); err == nil {
		t.Error("a manager without failover has left the file for a later one")
	}
	for name, content := range map[string]string{
		"broken":           `[{"a":`,
		"of other nodes":   `[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:99","vid":2}]`,
		"of another VID":   `[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":9}]`,
		"of an ill reason": `[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":2,"reason":"\u001b[2J"}]`,
	} {
		if err := os.WriteFile(file+".overrides", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		expect("a file "+name, start(true), 1, 1)
	}
	s = start(true)
	if err := s.Override("no answer", api.Change{A: self, B: b, VID: 2}); err != nil {
		t.Fatal(err)
	}
	one := *p
	one.VIDs = []transport.VID{1}
	if _, err := s.SetPlan(&one, ""); err != nil {
		t.Fatal(err)
	}
	expect("a plan without the VID", s, 1, 1)
	expect("and after a restart", start(true), 1, 1)
}

// keptIn returns the overrides that are kept beside a state file.
func keptIn(t *testing.T, state string) (kept []keptOverride) {
	t.Helper()
	b, err := os.ReadFile(state + overridesSuffix)
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return kept
}

// The manager of state m1, at its start, leaves alone what the manager of state m10 beside it has
// staged: only its own leftovers are removed.
func TestStatesSideBySide(t *testing.T) {
	dir := t.TempDir()
	ten := testServer(t, filepath.Join(dir, "m10"))
	defer ten.Close()
	if status, answer := post(t, ten, "/v1/prepare", `{"id":"a","lease_ms":60000,"plan":`+otherPlan+`}`); status != 200 {
		t.Fatal(answer)
	}
	for _, name := range []string{"m1", "m"} {
		if err := testServer(t, filepath.Join(dir, name)).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if status, answer := post(t, ten, "/v1/commit", `{"id":"a"}`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// The name of a state file is no pattern: what a manager that was killed has left is found in any
// folder, and what another one has prepared is not taken for it.
func TestLeftovers_OfAnyName(t *testing.T) {
	for _, folder := range []string{"rack", "rack[1]"} {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		own, others := filepath.Join(dir, ".m[1].new-7"), filepath.Join(dir, ".m1.new-8")
		for _, file := range []string{own, others} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := testServer(t, filepath.Join(dir, "m[1]")).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(own); err == nil {
			t.Errorf("%s: its own is still there", folder)
		}
		if _, err := os.Stat(others); err != nil {
			t.Errorf("%s: another manager's: %v", folder, err)
		}
	}
}

// Overrides that could not be written, as to a full disk, are written once there is room again: by
// themselves after a while, and at the end.
func TestOverridesAreKeptOnceTheDiskTakesThem(t *testing.T) {
	for _, ends := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state")
			s := testServer(t, file)
			defer s.Close()
			s.overrides.path = file + overridesSuffix
			s.served.Go(s.keepLoop)
			if err := os.Mkdir(s.overrides.path, 0o700); err != nil { // no file can take its place
				t.Fatal(err)
			}
			change := api.Change{A: s.cfg.MAC, B: transport.MAC{2, 0, 0, 0, 0, 2}, VID: 2}
			if err := s.Override("no answer", change); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := os.Remove(s.overrides.path); err != nil {
				t.Fatal(err)
			}
			if ends {
				_ = s.Close()
			} else {
				time.Sleep(keepAgain)
				synctest.Wait()
			}
			if kept := keptIn(t, file); len(kept) != 1 || kept[0].Change != change {
				t.Errorf("at the end %v: kept is %v", ends, kept)
			}
		})
	}
}
