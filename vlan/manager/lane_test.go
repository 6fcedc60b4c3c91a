package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A lane whose connection the manager has closed meanwhile sends its request on a new one, body and
// all.
func TestLaneComesBack(t *testing.T) {
	var bodies []int64
	s, c := onLane(t, func(w http.ResponseWriter, r *http.Request) {
		bodies = append(bodies, r.ContentLength)
		_, _ = w.Write([]byte(`{"version":"1.2"}`))
	})
	for range 3 {
		a, err := c.Reset(t.Context(), "why")
		if err != nil || a.Version != api.FirstVersion(1)+2 {
			t.Fatalf("%+v, %v", a, err)
		}
		s.CloseClientConnections()
	}
	if len(bodies) != 3 || bodies[2] != bodies[0] || bodies[0] == 0 {
		t.Errorf("bodies of %v bytes, want three of one length", bodies)
	}
}

// The end of a context ends a request that is not answered, and the next one has a connection of
// its own.
func TestLaneEndsWithItsContext(t *testing.T) {
	block := make(chan struct{})
	_, c := onLane(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-block
		}
		_, _ = w.Write([]byte(`{"version":"1.2"}`))
	})
	defer close(block)
	expectEnd(t, c)
	if _, err := c.Reset(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

// The end of a context ends a request of whose answer the head alone has come.
func TestLaneEndsWithinAnAnswer(t *testing.T) {
	block := make(chan struct{})
	_, c := onLane(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-block
	})
	defer close(block)
	expectEnd(t, c)
}

// onLane returns a client, on a lane, of a manager that answers by f.
func onLane(t *testing.T, f http.HandlerFunc) (*httptest.Server, *Client) {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	c := NewClient(Addr{Network: "tcp", Address: s.Listener.Addr().String()}, nil).onLane()
	t.Cleanup(c.Close)
	return s, c
}

// expectEnd has a request end with its context.
func expectEnd(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Table(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, api.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}
