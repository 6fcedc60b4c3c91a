package server

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

var errFull = errors.New("no space left on device")

// fillDisk has all writes of state files fail until the returned function is called.
func fillDisk(t *testing.T) (makeRoom func()) {
	t.Helper()
	well := systemDisk
	systemDisk.createTemp = func(string, string) (stagedFile, error) { return nil, errFull }
	makeRoom = func() { systemDisk = well }
	t.Cleanup(makeRoom)
	return makeRoom
}

func healthOf(t *testing.T, s *Server) (h api.Health) {
	t.Helper()
	_, answer := post(t, s, "GET /v1/health", "")
	if err := json.Unmarshal([]byte(answer), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// A manager whose state could be read begins though its disk is full, is not well, and has versions
// that no other start has given out; without a state it says what it needs.
func TestStartOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "state")
		s := testServer(t, file)
		if status, answer := post(t, s, "PUT /v1/table", `{"plan":`+otherPlan+`}`); status != 200 {
			t.Fatal(answer)
		}
		last, want := s.version, s.planID
		_ = s.Close()
		makeRoom := fillDisk(t)
		for range 3 {
			s = testServer(t, file)
			if s.version <= last || s.version.Start() != last.Start()+1 || s.planID != want {
				t.Errorf("version %v after %v, plan %s, want %s", s.version, last, s.planID, want)
			}
			last = s.version
			if h := healthOf(t, s); h.OK || !strings.Contains(h.Why, errFull.Error()) {
				t.Errorf("%+v", h)
			}
			if status, answer := post(t, s, "/v1/reset", ""); status == 200 || !strings.Contains(answer, "the change was not made") {
				t.Errorf("%d %s", status, answer)
			}
			_ = s.Close()
		}
		s = testServer(t, file)
		makeRoom()
		s.change.Lock()
		s.file.disk = systemDisk
		s.change.Unlock()
		time.Sleep(keepAgain)
		synctest.Wait()
		if h := healthOf(t, s); !h.OK {
			t.Errorf("with room again: %+v", h)
		}
		last = s.version
		_ = s.Close()
		for range 2 {
			s = testServer(t, file)
			if s.version <= last || !healthOf(t, s).OK {
				t.Errorf("later: version %v after %v", s.version, last)
			}
			last = s.version
			_ = s.Close()
		}
		fillDisk(t)
		_, err := New(Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}, State: filepath.Join(t.TempDir(), "state")})
		if err == nil || !strings.Contains(err.Error(), "make room there, or give another --state") || strings.Contains(err.Error(), "change") {
			t.Errorf("without a state: %v", err)
		}
	})
}

// After a write that has failed the manager is well again by itself, once there is room; what is
// prepared meanwhile is left alone.
func TestHealthComesBackByItself(t *testing.T) {
	for _, prepares := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := testServer(t, filepath.Join(t.TempDir(), "state"))
			defer s.Close()
			s.OnStep(func(string) error { return errFull })
			if status, _ := post(t, s, "/v1/reset", ""); status == 200 {
				t.Error("the change was made")
			}
			time.Sleep(keepAgain) // it is full yet
			synctest.Wait()
			s.OnStep(nil)
			if prepares {
				time.Sleep(keepAgain / 2)
				if status, answer := post(t, s, "/v1/prepare", `{"id":"a","lease_ms":60000,"plan":`+otherPlan+`}`); status != 200 {
					t.Fatal(answer)
				}
			}
			time.Sleep(keepAgain/2 + time.Second)
			synctest.Wait()
			if prepares {
				if healthOf(t, s).OK {
					t.Error("it has saved the state over what is prepared")
				}
				if status, answer := post(t, s, "/v1/commit", `{"id":"a"}`); status != 200 {
					t.Errorf("%d %s", status, answer)
				}
			} else {
				time.Sleep(keepAgain / 2)
				synctest.Wait()
			}
			if h := healthOf(t, s); !h.OK {
				t.Errorf("prepared %v: %+v", prepares, h)
			}
		})
	}
}
