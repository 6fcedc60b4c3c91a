package manager

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A manager that tells more routes than a table takes is no manager of this protocol.
func TestDialWithTooManyRoutes(t *testing.T) {
	for _, c := range []struct {
		routes int
		want   error
	}{{vlan.MaxRoutes, nil}, {vlan.MaxRoutes + 1, api.ErrProtocol}} {
		e := api.SessionEvent{MAC: &transport.MAC{2, 0, 0, 0, 0, 1}, Version: 1, Full: true}
		for k := range c.routes {
			e.Routes = append(e.Routes, api.Route{Dst: transport.MAC{2, 0, 1, 0, byte(k >> 8), byte(k)}, VID: 1})
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _ = json.NewEncoder(w).Encode(e); r.URL.Path == "/v1/sessions" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}))
		s, err := Dial(t.Context(), "tcp", server.Listener.Addr().String())
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), "its routes") {
			t.Errorf("%d routes: %v, want %v", c.routes, err, c.want)
		}
		if err == nil {
			_ = s.Close()
		}
		server.Close()
	}
}

// runs is a Drainer that has nothing to drain.
type runs struct{}

func (runs) Drain(_ context.Context, change func() error, _ ...transport.MAC) error { return change() }

// A route that a full table does not take is told, and not confirmed to the manager before there is
// room for it.
func TestSession_RouteThatTheTableDoesNotTake(t *testing.T) {
	first, second := transport.MAC{2, 0, 0, 0, 0, 8}, transport.MAC{2, 0, 0, 0, 0, 9}
	events, confirmed := make(chan api.SessionEvent, 2), make(chan api.Version, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var applied api.SessionApplied
		switch {
		case r.URL.Path == "/v1/sessions":
			lines := json.NewEncoder(w)
			_ = lines.Encode(api.SessionEvent{MAC: &transport.MAC{2, 0, 0, 0, 0, 1}, Version: 1, Full: true})
			for {
				_ = http.NewResponseController(w).Flush()
				select {
				case e := <-events:
					_ = lines.Encode(e)
				case <-r.Context().Done():
					return
				}
			}
		case strings.HasSuffix(r.URL.Path, "/applied") && json.NewDecoder(r.Body).Decode(&applied) == nil:
			confirmed <- applied.Version
		}
		_ = json.NewEncoder(w).Encode(api.Changed{})
	}))
	defer server.Close()
	told := make(chan Event, 1)
	dialer := Dialer{OnEvent: func(e Event) {
		if e.Kind == EventUndrained {
			told <- e
		}
	}}
	s, err := dialer.Dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.DrainWith(runs{})
	table := s.Table()
	var own []vlan.Route
	for k := range vlan.MaxRoutes - len(table.Routes()) {
		own = append(own, vlan.Route{Dst: transport.MAC{2, 0, 1, 0, byte(k >> 8), byte(k)}})
	}
	if err := table.Set(own...); err != nil {
		t.Fatal(err)
	}
	events <- api.SessionEvent{Version: 2, Routes: []api.Route{{Dst: first, VID: 5}}, Ack: true}
	if e := <-told; !errors.Is(e.Err, vlan.ErrBadRoute) {
		t.Errorf("told %v, want that the table is full", e.Err)
	}
	if err := table.Replace(nil); err != nil {
		t.Fatal(err)
	}
	events <- api.SessionEvent{Version: 3, Routes: []api.Route{{Dst: second, VID: 5}}, Ack: true}
	if v := <-confirmed; v != 3 || table.Route(first).Tag.VID != 5 || table.Route(second).Tag.VID != 5 {
		t.Errorf("version %v was confirmed with routes %v (want version 3, with its routes and those before)", v, table.Routes())
	}
}
