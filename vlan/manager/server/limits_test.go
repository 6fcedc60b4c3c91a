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
// and short ones do not. Four more may be for the paths, or for the counters of all routes.
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
	listings := []string{"/v1/paths", "/metrics?routes=all"}
	for k := range maxLong {
		release, err := s.admit(request(t.Context(), "GET", listings[k%2], 0))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	stranger := context.WithValue(t.Context(), http.ServerContextKey, s.readOnly)
	for _, path := range listings {
		w := httptest.NewRecorder()
		if s.http.Handler.ServeHTTP(w, request(ended, "GET", path, 0)); w.Code != http.StatusInternalServerError {
			t.Errorf("one more for %s: status %d, want it to wait", path, w.Code)
		}
		if release, err := s.admit(request(stranger, "GET", path, 0)); err != nil {
			t.Errorf("one for %s by a read-only address: %v", path, err)
		} else {
			release()
		}
	}
	if release, err := s.admit(request(ended, "GET", "/metrics", 0)); err != nil {
		t.Errorf("a short one for the metrics: %v", err)
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
