package manager_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"

	"github.com/rawlane/rawlane/vlan/plan"
)

// The table is the plan's at first, the program's after SetRoute, and the plan's again after Close.
func TestVFREC_4_2_SessionChangesAndRestores(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	r := s.Table()
	if v := vid(r, 2); v != 1 {
		t.Fatalf("VID to node 2 is %d at first, want the plan's: 1", v)
	}
	ctx := t.Context()
	if err := s.SetRoute(ctx, mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRoute(ctx, mac(1), mac(0), 2); err != nil { // in the other order
		t.Fatal(err)
	}
	if vid(r, 2) != 3 || vid(r, 1) != 2 || vid(r, 3) != 1 {
		t.Errorf("VIDs %d, %d, %d, want 3, 2, 1", vid(r, 2), vid(r, 1), vid(r, 3))
	}
	if err := s.SetRoute(ctx, mac(1), mac(3), 3); err != nil || vid(r, 1) != 2 || vid(r, 3) != 1 {
		t.Errorf("a change of others' pair: %v, VIDs %d, %d, want none and no effect", err, vid(r, 1), vid(r, 3))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if vid(r, 2) != 1 || vid(r, 1) != 1 {
		t.Errorf("VIDs %d, %d after Close, want the plan's", vid(r, 2), vid(r, 1))
	}
	if err := s.SetRoute(ctx, mac(0), mac(1), 2); !errors.Is(err, manager.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// What one program changes the others on the node send by at once.
func TestSessionsAreToldOfOthersChanges(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	a, b := n.dial(t, manager.Dialer{}), n.dial(t, manager.Dialer{})
	if err := a.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is told", func() bool { return vid(b.Table(), 2) == 3 })
	if err := b.SetRoute(t.Context(), mac(0), mac(2), 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is told", func() bool { return vid(a.Table(), 2) == 2 })
	// The latest counts until its program ends; then the one below it does.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a's own again", func() bool { return vid(a.Table(), 2) == 3 })
}

func TestSessionIsToldWhatIsWrong(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	for _, c := range []struct {
		name string
		a, b transport.MAC
		vid  transport.VID
		want error
	}{
		{"VID 0", mac(0), mac(1), 0, manager.ErrBadVID},
		{"VID 4095", mac(0), mac(1), 4095, manager.ErrBadVID},
		{"VID not in the plan", mac(0), mac(1), 4, manager.ErrBadVID},
		{"unknown node", mac(0), mac(9), 2, plan.ErrUnknownNode},
		{"unknown node in others' pair", mac(1), mac(9), 2, plan.ErrUnknownNode},
		{"a pair of one node", mac(0), mac(0), 2, plan.ErrUnknownNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Stats().Version
			err := s.SetRoute(t.Context(), c.a, c.b, c.vid)
			if !errors.Is(err, c.want) || !errors.Is(err, manager.ErrRefused) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if vid(s.Table(), 1) != 1 || s.Stats().Version != before {
				t.Errorf("the table has changed")
			}
		})
	}
	err := s.SetRoutes(t.Context(), manager.Change{A: mac(0), B: mac(1), VID: 2}, manager.Change{A: mac(1), B: mac(0), VID: 3})
	if !errors.Is(err, manager.ErrOneSided) || vid(s.Table(), 1) != 1 {
		t.Errorf("one-sided: %v, VID %d", err, vid(s.Table(), 1))
	}
}

// Programs change routes at the same time, over each other; all end up with the manager's, and the plan's are back when all have
// gone.
func TestManySessionsAtOnce(t *testing.T) {
	const programs, changes = 8, 100
	n := start(t, 0, cyclic(t, 6, 4), t.TempDir())
	var sessions []*manager.Session
	for range programs {
		sessions = append(sessions, n.dial(t, manager.Dialer{}))
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			for k := range changes {
				v := transport.VID(1 + rng.IntN(4))
				peer := 1 + rng.IntN(5)
				if err := s.SetRoute(t.Context(), mac(peer), mac(0), v); err != nil {
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

// The manager dies and comes back: meanwhile the table is in force, and afterwards the manager knows again what the program wants.
func TestManagerIsLostAndComesBack(t *testing.T) {
	dir := t.TempDir()
	n := start(t, 0, cyclic(t, 4, 3), dir)
	events := make(chan manager.Event, 10)
	s := n.dial(t, manager.Dialer{OnEvent: func(e manager.Event) { events <- e }})
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	version := s.Stats().Version
	n.stop()
	if e := <-events; e.Kind != manager.EventLost || !errors.Is(e.Err, manager.ErrUnreachable) {
		t.Errorf("event %v %v, want lost", e.Kind, e.Err)
	}
	if vid(s.Table(), 2) != 3 {
		t.Error("the table is not in force any more")
	}
	err := s.SetRoute(t.Context(), mac(0), mac(2), 2)
	if !errors.Is(err, manager.ErrUnreachable) || !strings.Contains(err.Error(), "it is being tried again; the table stays as it is") || strings.Count(err.Error(), "unreachable") != 1 {
		t.Errorf("SetRoute: %v", err)
	}
	if st := s.Stats(); st.Connected || st.Lost == nil {
		t.Errorf("%+v", st)
	}
	n = start(t, 0, nil, dir)
	if e := <-events; e.Kind != manager.EventBack {
		t.Errorf("event %v, want back", e.Kind)
	}
	routes, _ := n.Routes()
	if st := s.Stats(); routes[1].Tag.VID != 3 || vid(s.Table(), 2) != 3 || st.Version <= version || st.Reconnects != 1 {
		t.Errorf("manager's route %v, table's VID %d, %+v", routes[1], vid(s.Table(), 2), st)
	}
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 2); err != nil {
		t.Error(err)
	}
}

// The manager comes back with a plan that cannot do what the program wants.
func TestClaimsThatAPlanCannotKeepAreDropped(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	events := make(chan manager.Event, 10)
	s := n.dial(t, manager.Dialer{OnEvent: func(e manager.Event) { events <- e }})
	c := manager.Change{A: mac(2), B: mac(0), VID: 3}
	if err := s.SetRoutes(t.Context(), c, manager.Change{A: mac(0), B: mac(3), VID: 2}); err != nil {
		t.Fatal(err)
	}
	answer, err := n.SetPlan(cyclic(t, 4, 2), "fewer")
	if err != nil || len(answer.Dropped) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if e := <-events; e.Kind != manager.EventDropped || len(e.Changes) != 1 || e.Changes[0].VID != 3 {
		t.Errorf("event %+v", e)
	}
	if vid(s.Table(), 2) != 1 || vid(s.Table(), 3) != 2 {
		t.Errorf("VIDs %d, %d; want the plan's 1, the program's 2", vid(s.Table(), 2), vid(s.Table(), 3))
	}
}

// A program that dies says nothing: its connection ends.
func TestVFREC_4_2_AProgramsDeathRestores(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	conn, err := net.Dial("unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Write([]byte("GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: rawlane-session/1\r\n\r\n" +
		`{"id":1,"start":{"session":"s"}}` + "\n" + `{"id":2,"set":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change", func() bool { r, _ := n.Routes(); return r[0].Tag.VID == 3 })
	_ = conn.Close()
	eventually(t, "the plan's", func() bool { r, _ := n.Routes(); return r[0].Tag.VID == 1 })
}

// What is no manager, or another version of one, is said to be.
func TestDialWhatIsNoManagerOfThisVersion(t *testing.T) {
	answerer := func(answer string) string {
		path := filepath.Join(t.TempDir(), "sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = bufio.NewReader(c).ReadString('\n')
				_, _ = c.Write([]byte(answer))
				if strings.Contains(answer, " 101 ") {
					_, _ = io.Copy(io.Discard, c) // until the other end has had enough
				}
				_ = c.Close()
			}
		}()
		t.Cleanup(func() { _ = l.Close(); <-done })
		return path
	}
	for _, c := range []struct {
		name, path, want string
		is               error
	}{
		{"nobody", filepath.Join(t.TempDir(), "none"), "none: manager unreachable: dial unix", manager.ErrUnreachable},
		{"a manager of before sessions", answerer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "it knows no sessions, HTTP status 404 (want a rawlane manager that speaks rawlane-session/1)", manager.ErrProtocol},
		{"an older version", answerer("HTTP/1.1 426 Upgrade Required\r\nUpgrade: rawlane-session/0\r\nContent-Length: 0\r\n\r\n"), "it speaks rawlane-session/0, and this program rawlane-session/1", manager.ErrProtocol},
		{"no HTTP", answerer("SSH-2.0-x\r\n"), "it does not answer as HTTP", manager.ErrProtocol},
		{"gone at once", answerer(""), "EOF", manager.ErrProtocol},
		{"no JSON after the upgrade", answerer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: rawlane-session/1\r\n\r\nhello\n"), "not a manager of this protocol: invalid character", manager.ErrProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := manager.Dial(t.Context(), "unix", c.path)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "session: manager unix:"+c.path) {
				t.Errorf("%v; want %v with %q", err, c.is, c.want)
			}
		})
	}
	const unknown = `{"error":{"code":"not_found","message":"GET /v1/table: no such request"}}`
	c := manager.NewClient(manager.Addr{Network: "unix", Address: answerer(fmt.Sprintf("HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(unknown), unknown))}, nil)
	defer c.Close()
	if _, err := c.Table(t.Context()); !errors.Is(err, manager.ErrProtocol) || !strings.Contains(err.Error(), "GET /v1/table: no such request (is it older than this program?)") {
		t.Errorf("a manager that does not know the request: %v", err)
	}
}

// A manager that answers nothing is waited for until the context ends.
func TestDialEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := manager.Dial(ctx, "unix", path); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, manager.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// Lines that make no sense are answered, and change nothing.
func TestSessionRefusesNonsense(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	const begin = `{"id":1,"start":{"session":"s"}}` + "\n"
	for _, c := range []struct{ name, lines, want string }{
		{"no start", `{"id":1,"reset":true}` + "\n", "no start line"},
		{"no id of the session", `{"id":1,"start":{}}` + "\n", "no start line"},
		{"unknown field", begin + `{"id":2,"sett":[]}` + "\n", `unknown field \"sett\"`},
		{"asks for nothing", begin + `{"id":2}` + "\n", "a line that asks for nothing"},
		{"no JSON", begin + "x\n", "JSON: byte 1"},
		{"bad VID", begin + `{"id":2,"set":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":9}]}` + "\n", "bad_vid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.routes(t)
			conn, err := net.Dial("unix", n.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write([]byte("GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: rawlane-session/1\r\n\r\n" + c.lines))
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			var heard strings.Builder
			lines := bufio.NewScanner(conn)
			for lines.Scan() && !strings.Contains(lines.Text(), `"error"`) {
				heard.WriteString(lines.Text())
			}
			if !strings.Contains(lines.Text(), c.want) {
				t.Errorf("answer %q after %q, want %q", lines.Text(), heard.String(), c.want)
			}
			if after := n.routes(t); after != before {
				t.Errorf("it has changed something:\n%s\n%s", before, after)
			}
		})
	}
}

// A program that does not read costs no more than a table, and is not waited for.
func TestAProgramThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	n := start(t, 0, cyclic(t, 200, 3), t.TempDir())
	conn, err := net.Dial("unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: rawlane-session/1\r\n\r\n" + `{"id":1,"start":{"session":"s"}}` + "\n"))
	s := n.dial(t, manager.Dialer{})
	for k := range 3000 { // far more than a socket's buffer holds
		if err := s.SetRoute(t.Context(), mac(0), mac(1+k%100), transport.VID(1+k%3)); err != nil {
			t.Fatal(err)
		}
	}
	// When it reads on, it hears what is in force in the end.
	want, version := n.Routes()
	have := make(map[transport.MAC]transport.VID)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, manager.MaxLine)
	for lines.Scan() {
		var m struct {
			Version uint64
			Full    bool
			Routes  []manager.Route
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue // of the upgrade's answer
		}
		for _, r := range m.Routes {
			have[r.Dst] = r.VID
		}
		if m.Version == version {
			break
		}
	}
	for _, r := range want {
		if have[r.Dst] != r.Tag.VID {
			t.Fatalf("%v: told VID %d", r, have[r.Dst])
		}
	}
}

func TestVFREC_5_2_Transaction(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	failed := errors.New("nobody came")
	var order []string
	step := func(name string, err error) func(context.Context) error {
		return func(context.Context) error {
			order = append(order, fmt.Sprintf("%s %d", name, vid(s.Table(), 1)))
			return err
		}
	}
	changes := []manager.Change{{A: mac(0), B: mac(1), VID: 2}, {A: mac(0), B: mac(2), VID: 2}}
	err := s.Transaction(t.Context(), manager.Transaction{Changes: changes, Before: step("before", failed), After: step("after", nil)})
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "nothing was changed") || vid(s.Table(), 1) != 1 {
		t.Errorf("before fails: %v, VID %d", err, vid(s.Table(), 1))
	}
	if err := s.Transaction(t.Context(), manager.Transaction{Changes: changes, Before: step("before", nil), After: step("after", nil)}); err != nil {
		t.Error(err)
	}
	changes[0].VID = 3
	err = s.Transaction(t.Context(), manager.Transaction{Changes: changes, After: step("after", failed)})
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "the changes were made") || vid(s.Table(), 1) != 3 {
		t.Errorf("after fails: %v, VID %d", err, vid(s.Table(), 1))
	}
	if got := strings.Join(order, ", "); got != "before 1, before 1, after 2, after 3" {
		t.Errorf("order: %s", got)
	}
}

// What a failover forces lies over what programs want, is told with its reason, and is taken back.
func TestForceAndUnforce(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	const reason = "VID 3 to node 2 is silent"
	if err := n.Force(reason, manager.Change{A: mac(0), B: mac(2), VID: 2}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "forced", func() bool { return vid(s.Table(), 2) == 2 })
	table, err := n.client.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Pairs) != 2 || table.Pairs[0].By != "failover" || table.Pairs[0].Reason != reason || table.Pairs[0].Covered || !table.Pairs[1].Covered {
		t.Errorf("pairs %+v", table.Pairs)
	}
	n.Unforce("it answers again", mac(2))
	eventually(t, "the program's again", func() bool { return vid(s.Table(), 2) == 3 })
	l, err := n.client.Log(t.Context())
	if err != nil || len(l.Entries) != 3 || l.Entries[1].Act != "failover" || l.Entries[1].Reason != reason || l.Entries[2].Act != "restored" {
		t.Errorf("log %+v, %v", l, err)
	}
	if err := n.Force("x", manager.Change{A: mac(0), B: mac(2), VID: 9}); !errors.Is(err, manager.ErrBadVID) {
		t.Errorf("%v, want ErrBadVID", err)
	}
}

func ExampleDial() {
	// In a program: manager.Dial(ctx, "unix", manager.DefaultSocket).
	socket, end := exampleManager()
	defer end()
	ctx := context.Background()
	s, err := manager.Dial(ctx, "unix", socket)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() // takes the program's changes back

	router := s.Table() // for mcd.Config.Router
	show := func() { tag := router.Route(mac(2)).Tag; fmt.Println("to node 2 by", tag) }
	show()
	if err := s.SetRoute(ctx, mac(0), mac(2), 3); err != nil {
		fmt.Println(err)
	}
	show()
	if err := s.Reset(ctx); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// to node 2 by VID 1 PCP 0
	// to node 2 by VID 3 PCP 0
	// to node 2 by VID 1 PCP 0
}

func BenchmarkSetRoute(b *testing.B) {
	n := start(b, 0, cyclic(b, 16, 4), b.TempDir())
	s := n.dial(b, manager.Dialer{})
	for i := 0; b.Loop(); i++ {
		if err := s.SetRoute(b.Context(), mac(0), mac(1), transport.VID(1+i%2)); err != nil {
			b.Fatal(err)
		}
	}
}
