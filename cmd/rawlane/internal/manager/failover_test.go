package manager

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A guard that cannot watch a plan does not end the manager: it says so and tries again, ever less often.
func TestGuardTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
		p, err := plan.RoundRobin(macs, []transport.VID{1, 2})
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(server.Config{MAC: macs[0], Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var log strings.Builder
		g := &guard{server: s, ifname: "no such one", self: macs[0], log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		g.run(ctx)
		if n := strings.Count(log.String(), "failover cannot watch the plan"); n < 5 || n > 12 {
			t.Errorf("in two minutes it tried %d times, want 5 to 12:\n%s", n, log.String())
		}
	})
}
