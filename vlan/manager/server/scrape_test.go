package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

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
