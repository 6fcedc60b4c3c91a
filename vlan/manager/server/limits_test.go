package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Counters of all programs together are bounded; a program may report less than before always.
func TestLiveCountersAreBounded(t *testing.T) {
	a := newSessions()
	var all []*session
	for k := range 5 {
		sess, err := a.add(fmt.Sprint("s", k), "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sess)
	}
	full := make([]vlan.Sent, vlan.MaxCounts)
	for k := range 4 {
		if err := a.report(all[k], full); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.report(all[4], full[:1]); !errors.Is(err, api.ErrTooLarge) {
		t.Errorf("one too many: %v", err)
	}
	if err := a.report(all[0], full[:10]); err != nil {
		t.Errorf("less than before: %v", err)
	}
	a.remove(all[1])
	if err := a.report(all[4], full); err != nil {
		t.Errorf("in place of one that has ended: %v", err)
	}
	back, err := a.add("s1", "")
	if err != nil || len(back.counts) != len(full) {
		t.Fatalf("%d counts, %v", len(back.counts), err)
	}
	if want := len(full)*4 + 10; a.live != want {
		t.Errorf("%d counts, want %d", a.live, want)
	}
}

// Of requests with long bodies, and of those for the history, four are served at once; others wait,
// and short ones do not. Four more may be for the paths.
func TestLongRequestsWait(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	request := func(ctx context.Context, method, path string, length int64) *http.Request {
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(""))
		r.ContentLength = length
		return r
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var last func()
	for _, length := range []int64{-1, shortBody + 1, shortBody + 1} {
		release, err := s.admit(request(t.Context(), "PUT", "/v1/table", length))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	last, err := s.admit(request(t.Context(), "GET", "/v1/history", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*http.Request{
		request(ended, "PUT", "/v1/table", shortBody+1), request(ended, "GET", "/v1/history", 0),
	} {
		if _, err := s.admit(r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want it to wait", r.URL, err)
		}
	}
	if _, err := s.admit(request(ended, "PUT", "/v1/table", shortBody)); err != nil {
		t.Errorf("a short one: %v", err)
	}
	for range maxLong {
		release, err := s.admit(request(t.Context(), "GET", "/v1/paths", 0))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	if _, err := s.admit(request(ended, "GET", "/v1/paths", 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("one more for the paths: %v, want it to wait", err)
	}
	stranger := context.WithValue(t.Context(), http.ServerContextKey, s.readOnly)
	if release, err := s.admit(request(stranger, "GET", "/v1/paths", 0)); err != nil {
		t.Errorf("one by a read-only address: %v", err)
	} else {
		release()
	}
	last()
	if release, err := s.admit(request(t.Context(), "PUT", "/v1/table", shortBody+1)); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

// The body of a scraper's request is not read: slow ones would hold the places of operators' long
// requests.
func TestBodiesOfScrapersAreNotRead(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	for range maxLong {
		s.long <- struct{}{} // operators have all the places
	}
	ended, cancel := context.WithCancel(t.Context()) // who waits for one is refused
	cancel()
	for _, path := range []string{"/v1/health", "/v1/paths", "/v1/version", "/metrics"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} { // the mux takes a HEAD for a GET
			at := ended
			if path == "/v1/paths" {
				at = t.Context() // it waits for others of its kind alone
			}
			r := httptest.NewRequestWithContext(at, method, path, unreadable{t})
			r.ContentLength = -1
			w := httptest.NewRecorder()
			if s.readOnly.Handler.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unreadable")
}

// A history of large plans is shorter than one of small plans, and has the latest always.
func TestHistoryOfLargePlansIsBounded(t *testing.T) {
	large := func(pairs int) *api.Plan {
		p := &api.Plan{Plan: plan.Plan{Pairs: make(map[plan.Pair]transport.VID)}}
		for k := range pairs {
			p.Pairs[plan.Pair{A: 0, B: k + 1}] = 1
		}
		return p
	}
	for _, c := range []struct{ pairs, want int }{{1, api.MaxHistory}, {maxPastPairs / 4, 4}, {maxPastPairs, 1}, {maxPastPairs + 1, 1}} {
		s := new(state)
		p := large(c.pairs)
		for k := range api.MaxHistory + 3 {
			s.push(runningConfig{Plan: p, ID: fmt.Sprint(k)})
		}
		if len(s.Past) != c.want || s.Past[len(s.Past)-1].ID != fmt.Sprint(api.MaxHistory+1) {
			t.Errorf("%d pairs each: %d plans in the history, want %d", c.pairs, len(s.Past), c.want)
		}
	}
}

// Of large plans, too, what an abort of the group change goes back to stays, beside the latest one.
func TestHistoryKeepsWhatAnAbortGoesBackTo(t *testing.T) {
	large := &api.Plan{Plan: plan.Plan{Pairs: make(map[plan.Pair]transport.VID)}}
	for k := range maxPastPairs / 4 {
		large.Pairs[plan.Pair{A: 0, B: k + 1}] = 1
	}
	s := new(state)
	s.push(runningConfig{Plan: large, Reason: "before"})
	s.push(runningConfig{Plan: large, ID: "group"})
	for k := range api.MaxHistory {
		s.pushOver(nil, fmt.Sprint(k))
	}
	reasons := ""
	for _, p := range s.Past {
		reasons += p.Reason + " "
	}
	if want := "before 12 13 14 "; reasons != want {
		t.Errorf("the history has %q, want %q", reasons, want)
	}
	if err := s.undo(); err != nil || s.Reason != "before" {
		t.Errorf("the abort goes back to %q, %v", s.Reason, err)
	}
}

// A commit that comes after the end of its lease is refused, though the process has stood still and
// the lease's timer has not fired: the coordinator has told the others to go back by then. A clock
// that stands still while the machine is suspended makes no difference.
func TestCommitAfterTheLeaseIsRefusedWithoutTheTimer(t *testing.T) {
	for name, expires := range map[string]time.Time{
		"by the monotonic clock": time.Now().Add(-time.Millisecond),
		"by the wall's":          time.Now().Round(0).Add(-time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, filepath.Join(t.TempDir(), "state"))
			defer s.Close()
			if status, answer := post(t, s, "/v1/prepare", `{"id":"a","lease_ms":60000,"plan":`+otherPlan+`}`); status != 200 {
				t.Fatal(answer)
			}
			s.prepared.Expires = expires
			if status, answer := post(t, s, "/v1/commit", `{"id":"a"}`); status != 409 || !strings.Contains(answer, `"code":"lease"`) {
				t.Errorf("%d %s", status, answer)
			}
			if r, _ := s.Routes(); r[0].Tag.VID != 1 || s.leasesExpired != 1 || s.announced != nil {
				t.Errorf("VID %d, %d leases expired", r[0].Tag.VID, s.leasesExpired)
			}
		})
	}
}

// A lease that is over without its timer having fired keeps no other change waiting, and is not shown. To
// read changes nothing.
func TestALeaseThatIsOverKeepsNobodyWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		expired    uint64
	}{
		"set":      {"PUT /v1/table", `{"plan":` + otherPlan + `}`, 1},
		"prepare":  {"/v1/prepare", `{"id":"b","lease_ms":60000,"plan":` + otherPlan + `}`, 1},
		"abort":    {"/v1/abort", `{"id":"committed"}`, 1},
		"pairs":    {"PATCH /v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2}]}`, 1},
		"rollback": {"/v1/rollback", `{}`, 1},
		"read":     {"GET /v1/table", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, filepath.Join(t.TempDir(), "state"))
			defer s.Close()
			for _, step := range [][2]string{
				{"/v1/prepare", `{"id":"committed","lease_ms":60000,"plan":` + otherPlan + `}`},
				{"/v1/commit", `{"id":"committed"}`},
				{"/v1/prepare", `{"id":"a","lease_ms":60000,"plan":` + onePlan + `}`},
			} {
				if status, answer := post(t, s, step[0], step[1]); status != 200 {
					t.Fatal(answer)
				}
			}
			s.prepared.Expires = time.Now().Round(0).Add(-time.Millisecond)
			if status, answer := post(t, s, c.path, c.body); status != 200 || s.leasesExpired != c.expired {
				t.Errorf("%d %s, %d leases expired", status, answer, s.leasesExpired)
			} else if strings.Contains(answer, `"prepared":{"id":"a"`) {
				t.Errorf("%s", answer)
			}
		})
	}
}

// A state file of a later version is neither read nor put aside; one of the version before is read.
func TestStateOfOtherVersions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := testServer(t, file)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rewrite := func(format int, more string) []byte {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var seal sealed
		if err := json.Unmarshal(b, &seal); err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(string(seal.State), fmt.Sprintf(`{"format":%d`, stateFormat), fmt.Sprintf(`{"format":%d%s`, format, more), 1)
		b, err = json.Marshal(sealed{json.RawMessage(body), sum([]byte(body))})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return b
	}
	rewrite(oldestFormat, "")
	s = testServer(t, file)
	if r, _ := s.Routes(); len(r) != 2 || s.version.Start() != 2 {
		t.Errorf("of the version before: %v, start %d", r, s.version.Start())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	later := rewrite(stateFormat+1, `,"new_field":1`)
	_, err := New(Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}, State: file, DiscardState: true})
	if !errors.Is(err, ErrNewer) || errors.Is(err, ErrCorrupt) {
		t.Errorf("of a later version: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != string(later) {
		t.Errorf("the file has changed: %v", err)
	}
}

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

// However many paths a failover watches, a scrape has a bounded number of series, and those that are
// down are among them.
func TestPathSeriesAreBounded(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	for _, c := range []struct{ paths, down, want int }{
		{maxPathSamples, 1, maxPathSamples}, {maxPathSamples + 1, 3, 3}, {4 * maxPathSamples, 2 * maxPathSamples, maxPathSamples},
	} {
		f := api.Failover{Watching: true}
		for k := range c.paths {
			p := api.Path{Peer: transport.MAC{2, 0, 0, 0, byte(k >> 8), byte(k)}, VID: 1, State: "up"}
			if k >= c.paths-c.down {
				p.State = api.PathDown
			}
			f.Paths = append(f.Paths, p)
		}
		s.ShowFailover(func() api.Failover { return f })
		_, text := post(t, s, "GET /metrics", "")
		if got := strings.Count(text, "\nrawlane_path_up{"); got != c.want {
			t.Errorf("%d paths, %d down: %d series, want %d", c.paths, c.down, got, c.want)
		}
		if got := strings.Count(text, `",vid="1"} 0`+"\n"); got != min(c.down, maxPathSamples) {
			t.Errorf("%d paths, %d down: %d are told to be down", c.paths, c.down, got)
		}
		for _, want := range []string{"rawlane_paths_watched", "rawlane_paths_down"} {
			number := map[string]int{"rawlane_paths_watched": c.paths, "rawlane_paths_down": c.down}[want]
			if !strings.Contains(text, fmt.Sprintf("\n%s %d\n", want, number)) {
				t.Errorf("no %s %d", want, number)
			}
		}
	}
}

// A scraper makes programs report once a second at most.
func TestScrapesDoNotWakeProgramsEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		scrape := func() { s.recentCounters(t.Context()) }
		scrape()
		scrape()
		if s.sessions.asked != 1 {
			t.Errorf("asked %d times at once", s.sessions.asked)
		}
		time.Sleep(askInterval)
		scrape()
		s.Counters(t.Context()) // who wants them now gets them
		if s.sessions.asked != 3 {
			t.Errorf("asked %d times, want 3", s.sessions.asked)
		}
	})
}

// Scrapes within a second sum the programs' counters up once: strangers may scrape, and the sum of
// many counters holds up all changes of routes.
func TestScrapesSumUpOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		frames := func() (n uint64) {
			for _, c := range s.recentCounters(t.Context()).VIDs {
				n += c.Frames
			}
			return n
		}
		expect := func(when string, want uint64) {
			t.Helper()
			if got := frames(); got != want {
				t.Errorf("%s: %d frames, want %d", when, got, want)
			}
		}
		expect("at first", 0)
		s.sessions.past.add([]vlan.Sent{{VID: 1, Frames: 1}})
		expect("within the second", 0)
		time.Sleep(askInterval)
		expect("a second later", 1)
		s.sessions.past.add([]vlan.Sent{{VID: 1, Frames: 1}})
		s.Counters(t.Context()) // who wants them now gets them, and so does the next scrape
		expect("asked for", 2)
	})
}

// A program that does not report holds an answer up for 0.2 s.
func TestSilentProgramsHoldAnAnswerUpBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		if _, err := s.join(&api.SessionStart{Session: "s"}, "", func() {}, func(*api.SessionEvent) error { return nil }); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		c := s.Counters(t.Context())
		if took := time.Since(begin); c.Silent != 1 || took != 200*time.Millisecond {
			t.Errorf("%d silent after %v", c.Silent, took)
		}
	})
}

// A folder is synced indeed: one that cannot be is an error.
func TestSyncFolder(t *testing.T) {
	if err := syncFolder(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := syncFolder("/proc/self"); err == nil && runtime.GOOS == "linux" {
		t.Error("no error of a folder that no kernel syncs")
	}
}

// A change is synced before it takes the old state's place, and the folder afterwards.
func TestStateIsSynced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := testServer(t, file)
	defer s.Close()
	var steps []string
	s.file.disk = disk{
		createTemp: func(folder, pattern string) (stagedFile, error) {
			f, err := os.CreateTemp(folder, pattern)
			return &recordedFile{f, &steps}, err
		},
		syncFolder: func(folder string) error {
			steps = append(steps, "sync folder")
			if folder != filepath.Dir(file) {
				t.Errorf("synced %s", folder)
			}
			return syncFolder(folder)
		},
	}
	s.OnStep(func(step string) error {
		if step == "rename" {
			steps = append(steps, step)
		}
		return nil
	})
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 {
		t.Fatal(answer)
	}
	if got := strings.Join(steps, ", "); got != "write, write, sync, rename, close, sync folder" {
		t.Error(got)
	}
}

type recordedFile struct {
	*os.File
	steps *[]string
}

func (f *recordedFile) Write(b []byte) (int, error) {
	*f.steps = append(*f.steps, "write")
	return f.File.Write(b)
}

func (f *recordedFile) Sync() error {
	*f.steps = append(*f.steps, "sync")
	return f.File.Sync()
}

func (f *recordedFile) Close() error {
	*f.steps = append(*f.steps, "close")
	return f.File.Close()
}

// Requests with large bodies are carried out one at a time, once their bodies are there; others do
// not wait for them.
func TestLargeBodiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		s.large <- struct{}{} // another one is carried out
		if status, answer := post(t, s, "PUT /v1/table", `{"plan":`+otherPlan+`}`); status != 200 {
			t.Errorf("a short one: %d %s", status, answer)
		}
		status := 0
		body := strings.NewReader(`{"plan":` + onePlan + strings.Repeat(" ", largeBody) + `}`)
		go func() {
			w := httptest.NewRecorder()
			s.Handle(w, httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/table", body))
			status = w.Code
		}()
		synctest.Wait()
		if body.Len() > 0 || status != 0 {
			t.Errorf("while another one is carried out: %d, %d bytes are unread", status, body.Len())
		}
		<-s.large
		synctest.Wait()
		if status != 200 {
			t.Errorf("in its turn: %d", status)
		}
	})
}

// A name that is given twice is refused in any request, not in plans alone.
func TestNamesGivenTwice(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	for path, body := range map[string]string{
		"PATCH /v1/pairs": `{"pairs":[{"a":"0","b":"1","vid":1,"vid":2}]}`,
		"/v1/reset":       `{"reason":"a","Reason":"b"}`,
		"PUT /v1/table":   `{"plan":` + otherPlan + `,"plan":` + onePlan + `}`,
	} {
		if status, answer := post(t, s, path, body); status != 400 || !strings.Contains(answer, "is given twice") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
