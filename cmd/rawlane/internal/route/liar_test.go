package route

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// What a manager answers, be it true or not, moves no cursor and clears no screen.
func TestAnswersThatATerminalWouldObey(t *testing.T) {
	const clears, shown = "\x1b[2J", `\u001b[2J`
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]any{
			"/v1/log":   api.Log{Schema: api.Schema, Entries: []api.Entry{{Act: "plan", By: "operator", Reason: clears}}},
			"/v1/table": api.Table{Schema: api.Schema, Name: clears, PlanReason: clears, Sessions: []api.Program{{Program: clears}}},
		}
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusConflict)
			answer = map[string]api.Error{"error": {Code: "busy", Message: clears}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer manager.Close()
	addr := manager.Listener.Addr().String()
	for _, args := range []string{
		"route log --manager " + addr, "route show --manager " + addr, "route show --json --manager " + addr,
		"route counters --manager " + addr, "route status --managers " + addr, "route rollback --managers " + addr,
	} {
		out, errs, _ := command(t, strings.Fields(args)...)
		if all := out + errs; !strings.Contains(all, shown) || cli.Printable(all) != all {
			t.Errorf("%s: %q", args, all)
		}
	}
}
