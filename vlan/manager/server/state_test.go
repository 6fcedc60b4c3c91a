package server_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// planOf is a manager's plan as text, to compare.
func planOf(t testing.TB, s *server.Server) string {
	t.Helper()
	if s.Plan() == nil {
		return "none"
	}
	b, err := json.Marshal(api.Plan{Plan: *s.Plan()})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func textOf(t testing.TB, p *plan.Plan) string {
	t.Helper()
	b, err := json.Marshal(api.Plan{Plan: *p})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStateSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	if _, err := n.SetPlan(managertest.RoundRobin(t, 5, 2), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(3), B: managertest.MAC(0), VID: 2}}, "", 0); err != nil {
		t.Fatal(err)
	}
	routes, version := n.Routes()
	n.Stop()
	n = managertest.Start(t, 0, managertest.RoundRobin(t, 2, 1), dir) // the flag's plan is for the first start
	again, later := n.Routes()
	if planOf(t, n.Server) != textOf(t, managertest.RoundRobin(t, 5, 2)) || !slices.Equal(again, routes) || later <= version {
		t.Errorf("%v, version %d; want %v, later than %d", again, later, routes, version)
	}
	for range 2 {
		if _, err := n.Client.Rollback(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if planOf(t, n.Server) != textOf(t, managertest.RoundRobin(t, 4, 3)) {
		t.Errorf("rolled back to %s", planOf(t, n.Server))
	}
}

// A state file that is a link is written where that leads, from the first start on, and no other
// manager has it by its other name.
func TestStateThatIsALink(t *testing.T) {
	dir := t.TempDir()
	link, file := filepath.Join(dir, "etc", "state"), filepath.Join(dir, "disk", "deep", "state")
	for _, folder := range []string{filepath.Dir(link), filepath.Dir(file)} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		link:                                 filepath.Join("..", "short", "next"),
		filepath.Join(dir, "short"):          filepath.Dir(file),
		filepath.Join(dir, "disk/next"):      file,
		filepath.Join(dir, "disk/deep/next"): filepath.Join("..", "next"),
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	open := func(path string) (*server.Server, error) {
		return server.New(server.Config{MAC: managertest.MAC(0), State: path})
	}
	s, err := open(link)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := open(file); err == nil {
		t.Error("two managers have one file")
		_ = other.Close()
	}
	want := managertest.RoundRobin(t, 4, 3)
	if _, err := s.SetPlan(want, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if i, err := os.Lstat(link); err != nil || i.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v (%v)", i, err)
	}
	if i, err := os.Lstat(file); err != nil || !i.Mode().IsRegular() {
		t.Errorf("what it leads to is %v (%v)", i, err)
	}
	if s, err = open(file); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if planOf(t, s) != textOf(t, want) {
		t.Errorf("it has the plan %s", planOf(t, s))
	}
}

// A manager that is killed at any step of writing a change comes back with the old plan or the new
// one; before the renaming with the old one, after it with the new one.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel() // it waits for leases
	for i, step := range server.Steps {
		for _, act := range []string{"set", "pairs", "reset", "commit"} {
			t.Run(act+", "+step, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
				if _, err := n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(3), VID: 3}}, "", 0); err != nil {
					t.Fatal(err)
				}
				old, _ := n.Routes()
				var killed atomic.Bool
				n.OnStep(func(s string) error {
					if s == step {
						killed.Store(true)
						return n.Kill()
					}
					return nil
				})
				// A commit is asked for until its lease is over; on a machine that stands still that is
				// before the first time.
				for lease := 500 * time.Millisecond; !killed.Load(); lease *= 2 {
					if err := change(t, n, act, lease); err == nil {
						t.Fatal("the change was answered as if it had been made")
					} else if lease > 10*time.Second {
						t.Fatalf("it does not come to this step: %v", err)
					}
				}
				n.Stop()

				n = managertest.Start(t, 0, nil, dir)
				got, _ := n.Routes()
				n.OnStep(nil)
				if err := change(t, n, act, time.Minute); err != nil {
					t.Fatalf("again: %v", err)
				}
				next, _ := n.Routes()
				want := old
				if i > slices.Index(server.Steps, "rename") {
					want = next
				}
				if !slices.Equal(got, want) {
					t.Errorf("after the restart %v, want %v", got, want)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, ".state*")); len(left) > 0 {
					t.Errorf("left over: %v", left)
				}
			})
		}
	}
}

// change makes a change over HTTP; a commit has a lease.
func change(t testing.TB, n *managertest.Node, act string, lease time.Duration) error {
	t.Helper()
	var err error
	switch act {
	case "set":
		_, err = n.Client.SetPlan(t.Context(), managertest.RoundRobin(t, 4, 2), "", 0)
	case "pairs":
		_, err = n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(1), VID: 3}}, "", 0)
	case "reset":
		_, err = n.Client.Reset(t.Context(), "")
	case "commit":
		_, err = coordinator.Apply(t.Context(), []*manager.Client{n.Client}, managertest.RoundRobin(t, 4, 2), coordinator.ApplyOptions{Partial: true, Lease: lease})
	}
	return err
}

// A disk that refuses a write changes nothing, and the manager goes on.
func TestDiskRefusesAWrite(t *testing.T) {
	full := errors.New("no space left on device")
	for _, step := range server.Steps[:4] {
		t.Run(step, func(t *testing.T) {
			n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
			before := n.Snapshot(t)
			n.OnStep(func(s string) error {
				if s == step {
					return full
				}
				return nil
			})
			_, err := n.Client.SetPlan(t.Context(), managertest.RoundRobin(t, 4, 2), "", 0)
			if err == nil || !strings.Contains(err.Error(), full.Error()) || !strings.Contains(err.Error(), "the change was not made") {
				t.Errorf("%v", err)
			}
			if after := n.Snapshot(t); after != before {
				t.Errorf("it has changed something:\n%s\n%s", before, after)
			}
			n.OnStep(nil)
			if _, err := n.Client.SetPlan(t.Context(), managertest.RoundRobin(t, 4, 2), "", 0); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	// At the last step the change is made already: it is, with a warning.
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	n.OnStep(func(s string) error {
		if s == "fsync" {
			return full
		}
		return nil
	})
	answer, err := n.Client.SetPlan(t.Context(), managertest.RoundRobin(t, 4, 2), "", 0)
	if err != nil || !strings.Contains(answer.Warning, "no space left on device (the change was made, but might not survive a power failure)") {
		t.Errorf("fsync: %+v, %v", answer, err)
	}
}

// A state that cannot be understood is never thrown away: the manager does not start, or keeps it
// aside if it is told to start anew.
func TestCorruptState(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	n.Stop()
	file := filepath.Join(dir, "state")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty": "", "cut off": string(good[:len(good)/2]), "a bit flipped": strings.Replace(string(good), `"vid":2`, `"vid":3`, 1), "another format": "{}", "not JSON": "hello",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3), State: file}
			_, err := server.New(cfg)
			if !errors.Is(err, server.ErrCorrupt) || !strings.Contains(err.Error(), "mend it, or start with --discard-state: it is kept aside then") {
				t.Fatalf("%v", err)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != bad {
				t.Errorf("the file is %q now, %v", b, err)
			}
			cfg.DiscardState = true
			s, err := server.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			aside, _ := filepath.Glob(file + ".aside-*")
			if len(aside) != 1 {
				t.Fatalf("kept aside: %v", aside)
			}
			if b, err := os.ReadFile(aside[0]); err != nil || string(b) != bad {
				t.Errorf("kept aside is %q, %v", b, err)
			}
			_ = os.Remove(aside[0])
		})
	}
}

func TestStateOfAnotherNode(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	file := filepath.Join(dir, "state")
	if _, err := server.New(server.Config{MAC: managertest.MAC(0), State: file}); err == nil || !strings.Contains(err.Error(), "another manager has it") {
		t.Errorf("two managers: %v", err)
	}
	n.Stop()
	if _, err := server.New(server.Config{MAC: managertest.MAC(1), State: file}); err == nil || !strings.Contains(err.Error(), "is of node 02:00:00:00:00:01, and this is 02:00:00:00:00:02") {
		t.Errorf("another node's: %v", err)
	}
	if _, err := server.New(server.Config{MAC: managertest.MAC(9), Plan: managertest.RoundRobin(t, 2, 1)}); !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("a plan without the node: %v", err)
	}
}

// A manager that takes the place of one that is just ending waits for it.
func TestStateOfAManagerThatEnds(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	next := make(chan error)
	go func() {
		s, err := server.New(server.Config{MAC: managertest.MAC(0), State: filepath.Join(dir, "state")})
		if err == nil {
			err = s.Close()
		}
		next <- err
	}()
	n.Stop()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// Two programs and the operator want different VIDs for the same pairs. Whose counts is the same
// after a restart, in whichever order the programs come back: else this node would change its side
// of a pair alone.
func TestClaimsKeepTheirOrderAcrossARestart(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 6, 4), dir)
	sessions := []*manager.Session{n.Dial(t, manager.Dialer{}), n.Dial(t, manager.Dialer{})}
	for restart := range 3 {
		for range 30 {
			change := api.Change{A: managertest.MAC(0), B: managertest.MAC(1 + rng.IntN(5)), VID: transport.VID(1 + rng.IntN(4))}
			var err error
			if who := rng.IntN(3); who < len(sessions) {
				err = sessions[who].SetRoutes(t.Context(), change)
			} else {
				_, err = n.Client.SetPairs(t.Context(), []api.Change{change}, "", 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		before, _ := n.Routes()
		n.Stop()
		n = managertest.Start(t, 0, nil, dir)
		for _, s := range sessions {
			managertest.Eventually(t, "the programs are back", func() bool { return s.Stats().Reconnects == uint64(restart+1) })
		}
		if after, _ := n.Routes(); !slices.Equal(after, before) {
			t.Fatalf("seed %d, restart %d: routes %v, and before %v", seed, restart, after, before)
		}
	}
}

// What the operator asks for later does not put his earlier pairs over what programs have asked for
// since.
func TestOperatorsPairsKeepTheirPlace(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	set := func(peer int, vid transport.VID) {
		t.Helper()
		if _, err := n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(peer), VID: vid}}, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	set(1, 2)
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 3); err != nil {
		t.Fatal(err)
	}
	set(2, 2)
	if routes, _ := n.Routes(); routes[0].Dst != managertest.MAC(1) || routes[0].Tag.VID != 3 {
		t.Errorf("%v, want VID 3: the program's", routes[0])
	}
	set(1, 1)
	if routes, _ := n.Routes(); routes[0].Tag.VID != 1 {
		t.Errorf("%v, want VID 1: the operator's, who was later", routes[0])
	}
}

// Each start begins with a version that no start before has given out.
func TestVersionsGrowAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	last := api.Version(0)
	for range 3 {
		n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
		s := n.Dial(t, manager.Dialer{})
		for k := range 10 {
			if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), transport.VID(1+k%3)); err != nil {
				t.Fatal(err)
			}
		}
		_, version := n.Routes()
		if version <= last+5 {
			t.Errorf("version %d after %d", version, last)
		}
		last = version
		_ = s.Close()
		n.Stop()
	}
}
