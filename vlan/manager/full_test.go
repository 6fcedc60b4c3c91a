package manager

import (
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
