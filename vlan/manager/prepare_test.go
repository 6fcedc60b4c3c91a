package manager

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// post asks a server without a network in between, so that time can be virtual.
func post(t *testing.T, s *Server, path, body string) (status int, answer string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
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
					var doc struct{ Error Error }
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
	var p Plan
	if err := json.Unmarshal([]byte(onePlan), &p); err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}, Plan: &p.Plan, State: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The file is written before versions run out, so that they never repeat.
func TestVersionsAreReservedInTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := testServer(t, file)
	for range 2*versionsPerStart + versionsPerStart/2 {
		s.mu.Lock()
		s.changed(nil, false, nil, Entry{Act: actSession})
		ahead := s.version < s.state.VersionLimit
		s.mu.Unlock()
		if !ahead {
			t.Fatalf("version %d was given out, and only those below %d are reserved", s.version, s.state.VersionLimit)
		}
		if s.version%(versionsPerStart/8) == 0 {
			s.served.Wait() // the writer
		}
	}
	last := s.version
	_ = s.Close()
	s = testServer(t, file)
	if s.version <= last {
		t.Errorf("version %d after a restart, and %d before", s.version, last)
	}
	_ = s.Close()
}

func TestJournalKeepsTheLatest(t *testing.T) {
	var j journal
	for v := range uint64(MaxJournal + 10) {
		j.add(Entry{Version: v}, nil)
	}
	list := j.list()
	if len(list) != MaxJournal || list[0].Version != 10 || list[len(list)-1].Version != MaxJournal+9 {
		t.Errorf("%d entries, %d to %d", len(list), list[0].Version, list[len(list)-1].Version)
	}
}

// A table's counters may be more than a line takes.
func TestReportInParts(t *testing.T) {
	counts := make([]sent, 2*countsPerLine+5)
	for i := range counts {
		counts[i] = sent{Dst: transport.MAC{0x02, 0xff, 0xff, 0xff, 0xff, byte(i)}, VID: 4094, Frames: 1 << 50, Bytes: 1 << 60}
	}
	s := testServer(t, "")
	sub := &subscriber{s: s}
	for i, m := range reportLines(7, counts) {
		line, err := json.Marshal(m)
		if err != nil || len(line) >= MaxLine {
			t.Fatalf("line %d has %d bytes, %v; want less than %d", i, len(line), err, MaxLine)
		}
		if sub.reported != 0 || sub.counts != nil {
			t.Errorf("line %d: the report is taken before its end", i)
		}
		if err := sub.handle(m); err != nil {
			t.Fatal(err)
		}
	}
	if sub.reported != 7 || len(sub.counts) != len(counts) || sub.partial != nil {
		t.Errorf("report %d of %d counts, want 7 of %d", sub.reported, len(sub.counts), len(counts))
	}
	endless := &fromProgram{Counts: counts, More: true}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = sub.handle(endless)
	}
	if !errors.Is(err, errBadRequest) {
		t.Errorf("a report without end: %v", err)
	}
	_ = s.Close()
}

func TestEndedSessionsAreBounded(t *testing.T) {
	var a sessions
	a.init()
	for k := range MaxEnded + 50 {
		sub := &subscriber{id: string(rune(k)), counts: sentFrom([]sent{{VID: 1, Frames: 1}})}
		if err := a.add(sub); err != nil {
			t.Fatal(err)
		}
		a.remove(sub)
	}
	total := a.total().sorted()
	if len(a.ended) != MaxEnded || len(total) != 1 || total[0].Frames != MaxEnded+50 {
		t.Errorf("%d kept apart, %v in all", len(a.ended), total)
	}
	for k := range MaxSessions {
		if err := a.add(&subscriber{id: string(rune(k))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.add(&subscriber{id: "one more"}); err == nil {
		t.Error("one too many was taken")
	}
}
