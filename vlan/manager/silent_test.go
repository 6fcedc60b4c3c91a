package manager

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A manager that is stopped keeps its connections: a session finds out by its heartbeats.
func TestSilentManagerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		events := &stream{bufio.NewScanner(r), func() { _ = r.Close() }}
		s := &Session{ctx: t.Context(), fib: newFIB()}
		s.moved = sync.NewCond(&s.mu)
		begun := time.Now()
		go func() { // ends when the session closes the pipe
			for range 10 {
				time.Sleep(api.Heartbeat) // virtual
				_, _ = io.WriteString(w, `{"version":"1.1"}`+"\n")
			}
		}()
		err := s.listen(events)
		if took, want := time.Since(begun), 10*api.Heartbeat+maxSilence; took != want {
			t.Errorf("lost after %v, want %v", took, want)
		}
		if !errors.Is(err, api.ErrUnreachable) || !strings.Contains(err.Error(), "has said nothing for 1m30s") {
			t.Errorf("%v, want that it has said nothing", err)
		}
	})
}
