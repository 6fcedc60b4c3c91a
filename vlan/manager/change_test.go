package manager

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A change whose answer comes when another stream has begun is made again: that stream may have
// begun without it.
func TestChangeIsMadeAgainOnANewStream(t *testing.T) {
	var patches, streams atomic.Int32
	cut, session := make(chan struct{}), make(chan *Session, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		n := streams.Add(1)
		_, _ = fmt.Fprintf(w, `{"mac":"02:00:00:00:00:01","version":"1.%d","full":true}`+"\n", n)
		_ = http.NewResponseController(w).Flush()
		if n == 1 {
			<-cut
			return
		}
		<-r.Context().Done()
	})
	mux.HandleFunc("PATCH /v1/sessions/{id}/pairs", func(w http.ResponseWriter, _ *http.Request) {
		if patches.Add(1) == 1 {
			close(cut)
			for s := <-session; s.Stats().Version != api.FirstVersion(1)+2; {
				runtime.Gosched() // until the session has begun anew
			}
		}
		_, _ = w.Write([]byte(`{"version":"1.1"}`))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1.1"}`)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	s, err := Dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	session <- s
	if err := s.SetRoute(t.Context(), s.MAC(), transport.MAC{2, 0, 0, 0, 0, 2}, 3); err != nil {
		t.Error(err)
	}
	if n := patches.Load(); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
}

// A change that a manager does not answer, as one that is stopped, is made again where the session
// has begun anew, and fails where it cannot begin.
func TestChangeThatIsNotAnswered(t *testing.T) {
	for _, isBack := range []bool{true, false} {
		var patches, streams atomic.Int32
		stopped := make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
			n := streams.Add(1)
			if n > 1 && !isBack {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = fmt.Fprintln(w, `{"mac":"02:00:00:00:00:01","version":"1.1","full":true}`)
			_ = http.NewResponseController(w).Flush()
			if n == 1 {
				<-stopped
				return
			}
			<-r.Context().Done()
		})
		mux.HandleFunc("PATCH /v1/sessions/{id}/pairs", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if patches.Add(1) == 1 {
				close(stopped)
				<-r.Context().Done()
				return
			}
			_, _ = w.Write([]byte(`{"version":"1.1"}`))
		})
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1.1"}`)) })
		server := httptest.NewServer(mux)
		s, err := Dial(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		err = s.SetRoute(t.Context(), s.MAC(), transport.MAC{2, 0, 0, 0, 0, 2}, 3)
		if isBack && (err != nil || patches.Load() != 2) {
			t.Errorf("asked %d times, %v; want twice, and success", patches.Load(), err)
		}
		if !isBack && !errors.Is(err, api.ErrUnreachable) {
			t.Errorf("%v, want that the manager is lost", err)
		}
		_ = s.Close()
		server.Close()
	}
}

// A session never counts as connected while it has the version of the stream before: that of a
// manager that counts anew is lower, so that a change would seem to be in the table already.
func TestANewStreamBeginsWithItsOwnVersion(t *testing.T) {
	s := &Session{ctx: t.Context(), fib: newFIB(), dropped: make(map[transport.MAC]api.Version), woken: make(chan struct{}, 1)}
	s.moved = sync.NewCond(&s.mu)
	var ended atomic.Bool
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for !ended.Load() {
			s.mu.Lock()
			if s.fib.version%2 != api.Version(s.streams%2) {
				t.Errorf("stream %d has version %v", s.streams, s.fib.version)
				ended.Store(true)
			}
			s.mu.Unlock()
		}
	}()
	const streams = 100_000
	for k := 1; k <= streams && !ended.Load(); k++ {
		if err := s.join(&api.SessionEvent{Version: api.Version(2*streams - k), Full: true}); err != nil {
			t.Error(err)
		}
	}
	ended.Store(true)
	<-looked
}
