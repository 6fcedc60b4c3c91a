package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// post asks a server without a network in between, so that time can be virtual. A path may have
// another method before it.
func post(t *testing.T, s *Server, path, body string) (status int, answer string) {
	t.Helper()
	method, path, ok := strings.Cut(path, " ")
	if !ok {
		method, path = http.MethodPost, method
	}
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// numbered makes a step of each of n ids.
func numbered(n int, step func(id string) [2]string) (steps [][2]string) {
	for k := range n {
		steps = append(steps, step(strconv.Itoa(k)))
	}
	return steps
}

const (
	onePlan   = `{"vids":[1,2],"nodes":[{"mac":"02:00:00:00:00:01","vid":1},{"mac":"02:00:00:00:00:02","vid":1}]}`
	otherPlan = `{"vids":[1,2],"nodes":[{"mac":"02:00:00:00:00:01","vid":2},{"mac":"02:00:00:00:00:02","vid":1}]}`
)

// Each row of the table in prepare.go.
func TestPrepareAndCommit(t *testing.T) {
	prepare := func(id string) [2]string {
		return [2]string{"/v1/prepare", `{"id":"` + id + `","lease_ms":1000,"plan":` + otherPlan + `}`}
	}
	commit := func(id string) [2]string { return [2]string{"/v1/commit", `{"id":"` + id + `"}`} }
	abort := func(id string) [2]string { return [2]string{"/v1/abort", `{"id":"` + id + `"}`} }
	reset := [2]string{"/v1/reset", `{}`}
	rollback := func(id string) [2]string {
		return [2]string{"/v1/prepare", `{"id":"` + id + `","lease_ms":1000,"rollback":true}`}
	}
	back := [2]string{"/v1/rollback", `{}`}
	plan := [2]string{"PUT /v1/table", `{"plan":` + otherPlan + `}`}
	first := [2]string{"PUT /v1/table", `{"plan":` + strings.Replace(onePlan, `{"vids"`, `{"pcp":1,"vids"`, 1) + `}`}
	pairs := [2]string{"PATCH /v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":1}]}`}
	wait := func(d time.Duration) [2]string { return [2]string{"wait", d.String()} }
	for _, c := range []struct {
		name  string
		steps [][2]string
		codes []string // "" is success
		want  transport.VID
	}{
		{"prepare, commit", [][2]string{prepare("a"), commit("a")}, []string{"", ""}, 2},
		{"prepare alone changes nothing", [][2]string{prepare("a")}, []string{""}, 1},
		{"a commit whose answer was lost", [][2]string{prepare("a"), commit("a"), commit("a")}, []string{"", "", ""}, 2},
		{"commit of another", [][2]string{prepare("a"), commit("b"), commit("a")}, []string{"", "lease", ""}, 2},
		{"commit unprepared", [][2]string{commit("a")}, []string{"lease"}, 1},
		{"prepared twice by one", [][2]string{prepare("a"), wait(900 * time.Millisecond), prepare("a"), wait(900 * time.Millisecond), commit("a")}, []string{"", "", "", "", ""}, 2},
		{"prepared by another meanwhile", [][2]string{prepare("a"), prepare("b"), commit("b"), commit("a")}, []string{"", "busy", "lease", ""}, 2},
		{"a reset meanwhile", [][2]string{prepare("a"), reset, commit("a")}, []string{"", "busy", ""}, 2},
		{"abort", [][2]string{prepare("a"), abort("a"), commit("a"), prepare("b"), commit("b")}, []string{"", "", "lease", "", ""}, 2},
		{"abort of what is committed", [][2]string{prepare("a"), commit("a"), abort("a"), commit("a")}, []string{"", "", "", "lease"}, 1},
		{"abort of what is committed, and pairs set since", [][2]string{prepare("a"), commit("a"), pairs, abort("a")}, []string{"", "", "", ""}, 1},
		{"rollback of what is committed, and pairs set since", [][2]string{prepare("a"), commit("a"), pairs, rollback("b"), commit("b")}, []string{"", "", "", "", ""}, 1},
		{"abort of a committed rollback, and pairs set since", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b"), pairs, abort("b")}, []string{"", "", "", "", "", ""}, 2},
		{"abort of a committed rollback, and a reset since", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b"), reset, abort("b")}, []string{"", "", "", "", "", ""}, 2},
		{"abort of a committed rollback, and pairs set and rolled back since", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b"), pairs, back, abort("b")}, []string{"", "", "", "", "", "", ""}, 2},
		{"abort of what is committed, and pairs set since more often than the history is long", slices.Concat([][2]string{prepare("a"), commit("a")}, slices.Repeat([][2]string{pairs}, api.MaxHistory+1), [][2]string{abort("a")}), make([]string, api.MaxHistory+4), 1},
		{"abort twice", [][2]string{prepare("a"), commit("a"), abort("a"), abort("a")}, []string{"", "", "", ""}, 1},
		{"abort of a committed rollback", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b"), abort("b")}, []string{"", "", "", "", ""}, 2},
		{"abort of a committed rollback, and a plan set and rolled back since", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b"), plan, back, abort("b")}, []string{"", "", "", "", "", "", ""}, 2},
		{"abort of two committed rollbacks", [][2]string{first, prepare("a"), commit("a"), rollback("b"), commit("b"), rollback("c"), commit("c"), abort("c"), abort("b")}, []string{"", "", "", "", "", "", "", "", ""}, 2},
		{"rollback", [][2]string{prepare("a"), commit("a"), rollback("b"), commit("b")}, []string{"", "", "", ""}, 1},
		{"rollback of the first", [][2]string{rollback("b")}, []string{"no_history"}, 1},
		{"abort that comes before its prepare", [][2]string{abort("a"), prepare("a"), commit("a"), prepare("b"), commit("b")}, []string{"", "lease", "lease", "", ""}, 2},
		{"prepared again behind its abort", [][2]string{prepare("a"), abort("a"), prepare("a"), pairs}, []string{"", "", "lease", ""}, 1},
		{"abort while another is prepared, and prepared behind it", [][2]string{prepare("b"), abort("a"), prepare("a"), commit("b")}, []string{"", "", "lease", ""}, 2},
		{"aborts of more changes than are known", slices.Concat([][2]string{abort("a"), abort("a")}, numbered(maxAborted, abort), [][2]string{prepare("a"), prepare("1"), commit("a")}), append(make([]string, maxAborted+3), "lease", ""), 2},
		{"abort of another", [][2]string{prepare("a"), abort("b"), commit("a")}, []string{"", "", ""}, 2},
		{"the lease is over", [][2]string{prepare("a"), wait(1001 * time.Millisecond), commit("a")}, []string{"", "", "lease"}, 1},
		{"the lease is over, another's turn", [][2]string{prepare("a"), wait(1001 * time.Millisecond), prepare("b"), commit("b")}, []string{"", "", "", ""}, 2},
		{"just before its end", [][2]string{prepare("a"), wait(999 * time.Millisecond), commit("a"), wait(time.Second)}, []string{"", "", "", ""}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "state")
				s := testServer(t, file)
				for i, step := range c.steps {
					if step[0] == "wait" {
						d, _ := time.ParseDuration(step[1])
						time.Sleep(d) // virtual
						synctest.Wait()
						continue
					}
					status, answer := post(t, s, step[0], step[1])
					var doc struct{ Error api.Error }
					if err := json.Unmarshal([]byte(answer), &doc); err != nil {
						t.Fatal(err)
					}
					if doc.Error.Code != c.codes[i] || (status == 200) != (c.codes[i] == "") {
						t.Errorf("step %d, %s: %d %s, want %q", i, step[0], status, answer, c.codes[i])
					}
				}
				if r, _ := s.Routes(); r[0].Tag.VID != c.want {
					t.Errorf("VID %d, want %d", r[0].Tag.VID, c.want)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				// What is prepared does not survive; what is committed does.
				s = testServer(t, file)
				if r, _ := s.Routes(); r[0].Tag.VID != c.want || s.prepared != nil {
					t.Errorf("after a restart VID %d, want %d", r[0].Tag.VID, c.want)
				}
				_ = s.Close()
			})
		})
	}
}

func testServer(t *testing.T, file string) *Server {
	t.Helper()
	var p api.Plan
	if err := json.Unmarshal([]byte(onePlan), &p); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}, Plan: &p.Plan, State: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The log keeps the latest changes, and programs' changes do not push the operator's out.
func TestLogKeepsTheLatest(t *testing.T) {
	var l changeLog
	for v := range api.Version(api.MaxLog + 10) {
		l.add(api.Entry{Act: actPlan, Version: v}, nil)
	}
	for v := range api.Version(2 * api.MaxLog) {
		l.add(api.Entry{Act: actSession, Version: 1000 + v}, nil)
	}
	l.add(api.Entry{Act: actOverride, Version: 5000}, nil)
	all := l.all()
	isSorted := slices.IsSortedFunc(all, func(a, b api.Entry) int { return cmp.Compare(a.Version, b.Version) })
	if len(all) != 2*api.MaxLog || !isSorted || all[0].Version != 11 || all[api.MaxLog-1].Version != 1000+api.MaxLog ||
		all[len(all)-1].Version != 5000 {
		t.Errorf("%d entries, %d to %d", len(all), all[0].Version, all[len(all)-1].Version)
	}
}

func TestEndedSessionsAreBounded(t *testing.T) {
	a := newSessions()
	for k := range maxEnded + 50 {
		sess, err := a.add(fmt.Sprint("s", k), "")
		if err != nil {
			t.Fatal(err)
		}
		sess.counts = []vlan.Sent{{VID: 1, Frames: 1}}
		a.remove(sess)
	}
	total := a.total().sorted()
	if len(a.ended) != maxEnded || len(total) != 1 || total[0].Frames != maxEnded+50 {
		t.Errorf("%d kept apart, %v in all", len(a.ended), total)
	}
	for k := range maxSessions {
		if _, err := a.add(fmt.Sprint("t", k), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.add("one more", ""); !errors.Is(err, api.ErrFull) {
		t.Errorf("one too many: %v, want ErrFull", err)
	}
}

// Destinations that programs invent do not grow the sums without bound, and their frames are
// counted all the same.
func TestSumsAreBounded(t *testing.T) {
	s := make(sums)
	for k := range maxEndedCounts + 1000 {
		s.add([]vlan.Sent{{Dst: transport.MAC{2, byte(k >> 24), byte(k >> 16), byte(k >> 8), byte(k)}, VID: 1, Frames: 1}})
	}
	var frames uint64
	for _, v := range s {
		frames += v.Frames
	}
	if len(s) > maxEndedCounts+1 || frames != maxEndedCounts+1000 {
		t.Errorf("%d sums of %d frames", len(s), frames)
	}
}
