package manager_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// The table is the plan's at first, the program's after SetRoute, and the plan's again after Close.
func TestVFREC_4_2_SessionChangesAndRestores(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	r := s.Table()
	if v := managertest.VID(r, 2); v != 1 {
		t.Fatalf("VID to node 2 is %d at first, want the plan's: 1", v)
	}
	ctx := t.Context()
	if err := s.SetRoute(ctx, managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRoute(ctx, managertest.MAC(1), managertest.MAC(0), 2); err != nil { // in the other order
		t.Fatal(err)
	}
	if managertest.VID(r, 2) != 3 || managertest.VID(r, 1) != 2 || managertest.VID(r, 3) != 1 {
		t.Errorf("VIDs %d, %d, %d, want 3, 2, 1", managertest.VID(r, 2), managertest.VID(r, 1), managertest.VID(r, 3))
	}
	if err := s.SetRoute(ctx, managertest.MAC(1), managertest.MAC(3), 3); err != nil || managertest.VID(r, 1) != 2 || managertest.VID(r, 3) != 1 {
		t.Errorf("a change of others' pair: %v, VIDs %d, %d, want none and no effect", err, managertest.VID(r, 1), managertest.VID(r, 3))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if managertest.VID(r, 2) != 1 || managertest.VID(r, 1) != 1 {
		t.Errorf("VIDs %d, %d after Close, want the plan's", managertest.VID(r, 2), managertest.VID(r, 1))
	}
	if err := s.SetRoute(ctx, managertest.MAC(0), managertest.MAC(1), 2); !errors.Is(err, api.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// What one program changes the others on the node send by at once.
func TestSessionsAreToldOfOthersChanges(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	a, b := n.Dial(t, manager.Dialer{}), n.Dial(t, manager.Dialer{})
	if err := a.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "b is told", func() bool { return managertest.VID(b.Table(), 2) == 3 })
	if err := b.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 2); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "a is told", func() bool { return managertest.VID(a.Table(), 2) == 2 })
	// The latest counts until its program ends; then the one below it does.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "a's own again", func() bool { return managertest.VID(a.Table(), 2) == 3 })
}

func TestSessionIsToldWhatIsWrong(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	for _, c := range []struct {
		name string
		a, b transport.MAC
		vid  transport.VID
		want error
	}{
		{"VID 0", managertest.MAC(0), managertest.MAC(1), 0, api.ErrBadVID},
		{"VID 4095", managertest.MAC(0), managertest.MAC(1), 4095, api.ErrBadVID},
		{"VID not in the plan", managertest.MAC(0), managertest.MAC(1), 4, api.ErrBadVID},
		{"unknown node", managertest.MAC(0), managertest.MAC(9), 2, plan.ErrUnknownNode},
		{"unknown node in others' pair", managertest.MAC(1), managertest.MAC(9), 2, plan.ErrUnknownNode},
		{"a pair of one node", managertest.MAC(0), managertest.MAC(0), 2, plan.ErrUnknownNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Stats().Version
			err := s.SetRoute(t.Context(), c.a, c.b, c.vid)
			if !errors.Is(err, c.want) || !errors.Is(err, api.ErrRefused) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if managertest.VID(s.Table(), 1) != 1 || s.Stats().Version != before {
				t.Errorf("the table has changed")
			}
		})
	}
	err := s.SetRoutes(t.Context(), api.Change{A: managertest.MAC(0), B: managertest.MAC(1), VID: 2}, api.Change{A: managertest.MAC(1), B: managertest.MAC(0), VID: 3})
	if !errors.Is(err, api.ErrOneSided) || managertest.VID(s.Table(), 1) != 1 {
		t.Errorf("one-sided: %v, VID %d", err, managertest.VID(s.Table(), 1))
	}
}

// Programs change routes at the same time, over each other; all end up with the manager's, and the
// plan's are back when all have gone.
func TestManySessionsAtOnce(t *testing.T) {
	const programs, changes = 8, 100
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 6, 4), t.TempDir())
	var sessions []*manager.Session
	for range programs {
		sessions = append(sessions, n.Dial(t, manager.Dialer{}))
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			for k := range changes {
				v := transport.VID(1 + rng.IntN(4))
				peer := 1 + rng.IntN(5)
				if err := s.SetRoute(t.Context(), managertest.MAC(peer), managertest.MAC(0), v); err != nil {
					t.Errorf("program %d, change %d: %v", i, k, err)
					return
				}
				if k%30 == 29 {
					if err := s.Reset(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	awaitRoutes(t, n, sessions)
	for _, s := range sessions[1:] {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := sessions[0].Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := sessions[0].Table().Routes(), n.Plan().Routes(0); !slices.Equal(got, want) {
		t.Errorf("%v, want the plan's: %v", got, want)
	}
}

// The manager comes back with a plan that cannot do what the program wants.
func TestClaimsThatAPlanCannotKeepAreDropped(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	events := make(chan manager.Event, 10)
	s := n.Dial(t, manager.Dialer{OnEvent: func(e manager.Event) { events <- e }})
	c := api.Change{A: managertest.MAC(2), B: managertest.MAC(0), VID: 3}
	if err := s.SetRoutes(t.Context(), c, api.Change{A: managertest.MAC(0), B: managertest.MAC(3), VID: 2}); err != nil {
		t.Fatal(err)
	}
	answer, err := n.SetPlan(managertest.RoundRobin(t, 4, 2), "fewer")
	if err != nil || len(answer.Dropped) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if e := <-events; e.Kind != manager.EventDropped || len(e.Changes) != 1 || e.Changes[0].VID != 3 {
		t.Errorf("event %+v", e)
	}
	if managertest.VID(s.Table(), 2) != 1 || managertest.VID(s.Table(), 3) != 2 {
		t.Errorf("VIDs %d, %d; want the plan's 1, the program's 2", managertest.VID(s.Table(), 2), managertest.VID(s.Table(), 3))
	}
}

// A program that dies says nothing: its connection ends.
func TestVFREC_4_2_AProgramsDeathRestores(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	w := n.Open(t, "POST", "/v1/sessions", `{"session":"s"}`)
	const pair = `{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}`
	if status, answer, _ := n.Ask(t, "PATCH", "/v1/sessions/s/pairs", pair); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if r, _ := n.Routes(); r[0].Tag.VID != 3 {
		t.Errorf("%v, want the program's VID 3", r[0])
	}
	_ = w.Body.Close()
	managertest.Eventually(t, "the plan's", func() bool { r, _ := n.Routes(); return r[0].Tag.VID == 1 })
	if status, answer, _ := n.Ask(t, "PATCH", "/v1/sessions/s/pairs", pair); status != 410 || !strings.Contains(answer, "no_session") {
		t.Errorf("a change by the dead program: %d %s", status, answer)
	}
}

// A program whose connection breaks before its first event leaves nothing behind, however often.
func TestSessionsDoNotLeak(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	for k := range 300 { // more than a manager serves at once
		conn, err := net.Dial("unix", n.Socket)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"session":"s%d","pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}`, k)
		_, err = fmt.Fprintf(conn, "POST /v1/sessions HTTP/1.1\r\nHost: manager\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	managertest.Eventually(t, "no session is left", func() bool {
		h, err := n.Client.Health(t.Context())
		r, _ := n.Routes()
		return err == nil && h.Sessions == 0 && r[0].Tag.VID == 1
	})
	n.Dial(t, manager.Dialer{})
}

// A session that begins anew while its old connection still seems to be there takes the old one's
// place: one program, counted once.
func TestASessionTakesItsOwnPlace(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	const start = `{"session":"s","pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}`
	old := n.Open(t, "POST", "/v1/sessions", start)
	defer old.Body.Close()
	const counts = `{"counts":[{"dst":"02:00:00:00:00:02","vid":3,"frames":7,"bytes":700}]}`
	if status, answer, _ := n.Ask(t, "POST", "/v1/sessions/s/counters", counts); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	again := n.Open(t, "POST", "/v1/sessions", start)
	defer again.Body.Close()
	if _, err := io.Copy(io.Discard, old.Body); err != nil {
		t.Errorf("the old stream: %v, want its end", err)
	}
	c := n.Counters(t.Context())
	if len(c.Nodes) != 1 || c.Nodes[0].Frames != 7 {
		t.Errorf("counters %+v, want 7 frames once", c.Nodes)
	}
	if r, _ := n.Routes(); r[0].Tag.VID != 3 {
		t.Errorf("%v, want the program's VID 3", r[0])
	}
}

// A manager that comes back is asked again for the node's own pairs alone: all of a cluster's would
// be more than a request may have.
func TestOthersPairsAreNotAskedForAgain(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	p := newProxy(t, n.Socket)
	events := make(chan manager.Event, 10)
	s, err := (&manager.Dialer{OnEvent: func(e manager.Event) { events <- e }}).Dial(t.Context(), "unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.SetRoutes(t.Context(), api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 3},
		api.Change{A: managertest.MAC(1), B: managertest.MAC(3), VID: 3})
	if err != nil {
		t.Fatal(err)
	}
	p.cut()
	if e := <-events; e.Kind != manager.EventLost {
		t.Errorf("%v, want lost", e.Kind)
	}
	if _, err := n.SetPlan(managertest.RoundRobin(t, 4, 2), "no VID 3"); err != nil { // which drops what is asked for
		t.Fatal(err)
	}
	first, second := <-events, <-events // in either order
	if first.Kind+second.Kind != manager.EventDropped+manager.EventBack || len(first.Changes)+len(second.Changes) != 1 {
		t.Errorf("%+v, %+v; want back, and one pair dropped", first, second)
	}
}

// Requests that make no sense are answered, and change nothing.
func TestSessionRefusesNonsense(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	w := n.Open(t, "POST", "/v1/sessions", `{"session":"s"}`)
	defer w.Body.Close()
	for _, c := range []struct{ name, method, path, body, want string }{
		{"no id", "POST", "/v1/sessions", `{}`, "want an id of 1 to 64 bytes"},
		{"a long id", "POST", "/v1/sessions", `{"session":"` + strings.Repeat("x", 65) + `"}`, "want an id of 1 to 64 bytes"},
		{"a name that clears the screen", "POST", "/v1/sessions", `{"session":"t","program":"\u001b[2J"}`, "want text that can be printed"},
		{"an unknown field of a start", "POST", "/v1/sessions", `{"session":"t","name":"x"}`, `unknown field \"name\"`},
		{"an unknown field", "PATCH", "/v1/sessions/s/pairs", `{"sett":[]}`, `unknown field \"sett\"`},
		{"no pairs", "PATCH", "/v1/sessions/s/pairs", `{}`, "no pairs"},
		{"no JSON", "PATCH", "/v1/sessions/s/pairs", `x`, "JSON: byte 1"},
		{"bad VID", "PATCH", "/v1/sessions/s/pairs", `{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":9}]}`, "bad_vid"},
		{"bad version", "POST", "/v1/sessions/s/applied", `{"version":"7"}`, "want START.CHANGES"},
		{"no such session", "PATCH", "/v1/sessions/t/pairs", `{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":1}]}`, "no_session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.Snapshot(t)
			status, answer, _ := n.Ask(t, c.method, c.path, c.body)
			if status == 200 || !strings.Contains(answer, c.want) {
				t.Errorf("%d %s, want %q", status, answer, c.want)
			}
			if after := n.Snapshot(t); after != before {
				t.Errorf("it has changed something:\n%s\n%s", before, after)
			}
		})
	}
}

// A program that does not read costs no more than a table, and does not hold up the others.
func TestAProgramThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 200, 3), t.TempDir())
	w := n.Open(t, "POST", "/v1/sessions", `{"session":"s"}`)
	defer w.Body.Close()
	s := n.Dial(t, manager.Dialer{})
	start := time.Now()
	for k := range 3000 { // far more than a socket's buffer holds
		if time.Since(start) > 2*time.Second {
			break // the session of a program that does not read ends after five
		}
		if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1+k%100), transport.VID(1+k%3)); err != nil {
			t.Fatal(err)
		}
	}
	// When it reads on, it is told what is in force in the end.
	want, version := n.Routes()
	have := make(map[transport.MAC]transport.VID)
	for lines := json.NewDecoder(w.Body); ; {
		var e api.SessionEvent
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Routes {
			have[r.Dst] = r.VID
		}
		if e.Version == version {
			break
		}
	}
	for _, r := range want {
		if have[r.Dst] != r.Tag.VID {
			t.Fatalf("%v: told VID %d", r, have[r.Dst])
		}
	}
}

// An override lies over the programs' candidates, is told with its reason, and is removed.
func TestOverrideAndRestore(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		t.Fatal(err)
	}
	const reason = "VID 3 to node 2 is silent"
	if err := n.Override(reason, api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 2}); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "overridden", func() bool { return managertest.VID(s.Table(), 2) == 2 })
	table, err := n.Client.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Pairs) != 2 || table.Pairs[0].By != "failover" || table.Pairs[0].Reason != reason || table.Pairs[0].Covered || !table.Pairs[1].Covered {
		t.Errorf("pairs %+v", table.Pairs)
	}
	n.Restore("it answers again", managertest.MAC(2))
	managertest.Eventually(t, "the program's again", func() bool { return managertest.VID(s.Table(), 2) == 3 })
	l, err := n.Client.Log(t.Context())
	if err != nil || len(l.Entries) != 3 || l.Entries[1].Act != "failover" || l.Entries[1].Reason != reason || l.Entries[2].Act != "restored" {
		t.Errorf("log %+v, %v", l, err)
	}
	if err := n.Override("x", api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 9}); !errors.Is(err, api.ErrBadVID) {
		t.Errorf("%v, want ErrBadVID", err)
	}
}

func BenchmarkSetRoute(b *testing.B) {
	n := managertest.Start(b, 0, managertest.RoundRobin(b, 16, 4), b.TempDir())
	s := n.Dial(b, manager.Dialer{})
	for i := 0; b.Loop(); i++ {
		if err := s.SetRoute(b.Context(), managertest.MAC(0), managertest.MAC(1), transport.VID(1+i%2)); err != nil {
			b.Fatal(err)
		}
	}
}
