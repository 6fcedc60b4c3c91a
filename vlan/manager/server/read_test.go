package server

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The table is read while a change waits for the disk, and shows what is in force: the new plan once
// a restart finds it, and until then the old one, with the change that is prepared.
func TestTableIsReadWhileTheDiskIsSlow(t *testing.T) {
	const prepare, prepared = `{"id":"a","lease_ms":60000,"plan":` + otherPlan + `}`, `"prepared":{"id":"a"`
	for _, c := range []struct {
		name, first, request, body string
		steps, old                 string // of the steps, those at which the old plan is in force
		shown                      string // beside the old plan
	}{
		{"a plan", "", "PUT /v1/table", `{"plan":` + otherPlan + `}`, "create write sync rename fsync", "create write sync rename", ""},
		{"prepared", "", "/v1/prepare", prepare, "create write sync", "create write sync", ""},
		{"committed", prepare, "/v1/commit", `{"id":"a"}`, "rename fsync", "rename", prepared},
	} {
		for _, at := range strings.Fields(c.steps) {
			t.Run(c.name+", "+at, func(t *testing.T) {
				s := testServer(t, filepath.Join(t.TempDir(), "state"))
				defer s.Close()
				if c.first != "" {
					post(t, s, "/v1/prepare", c.first)
				}
				waits, disk := make(chan struct{}), make(chan struct{})
				s.OnStep(func(step string) error {
					if step == at {
						close(waits)
						<-disk
					}
					return nil
				})
				changed, table := make(chan int, 1), make(chan string, 1)
				go func() { status, _ := post(t, s, c.request, c.body); changed <- status }()
				<-waits
				go func() { _, answer := post(t, s, "GET /v1/table", ""); table <- answer }()
				select {
				case answer := <-table:
					vid, shown := `"vid":2}`, ""
					if strings.Contains(c.old, at) {
						vid, shown = `"vid":1}`, c.shown
					}
					if !strings.Contains(answer, vid) || strings.Contains(answer, prepared) != (shown != "") {
						t.Errorf("%s: want %s, and %q", answer, vid, shown)
					}
				case <-time.After(5 * time.Second):
					t.Error("the table is not read before the disk is done")
					defer func() { <-table }()
				}
				close(disk)
				if status := <-changed; status != 200 {
					t.Errorf("the change: %d", status)
				}
			})
		}
	}
}
