package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// Programs' calls have no window, over rawlane or TCP, and those over TCP no tag or key.
func TestBenchProgramsJSON(t *testing.T) {
	for _, b := range programBenches {
		out, errs, status := command(t, "bench", b.name, "--iters", "20", "--vid", "7", "--json")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if status != cli.ExitDone || errs != "" || len(lines) != 2 {
			t.Fatalf("status %d, said %s, printed %s", status, errs, out)
		}
		for i, line := range lines {
			var r result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if r.Bench != b.name || r.Link != []string{"fabric", "tcp"}[i] || r.Window != 0 || r.Tagged != (i == 0) ||
				r.Keys != launch.Unprotected || r.MsgsPerS <= 0 || r.MinUS <= 0 || r.MinUS > r.MeanUS || r.MeanUS > r.MaxUS {
				t.Errorf("%s", line)
			}
		}
	}
}

// Between interfaces without an IPv4 address there is no TCP: node 1's loopback is not node 0's.
func TestBenchPrograms_WithoutAnAddress(t *testing.T) {
	eps := mcdtest.Open(t, 2, mcdtest.Config{})
	b := programBenches[0]
	b.sizes, b.iters = []int{4}, 20
	var out bytes.Buffer
	var ends [2]error
	var running sync.WaitGroup
	for k, ep := range eps {
		running.Go(func() {
			form := result{Bench: b.name, Link: "ring", Iters: b.iters}
			ends[k] = b.part(t.Context(), &node{ep: ep, nic: "noaddress0", form: form, lines: cli.Lines{Out: &out, JSON: true}})
		})
	}
	running.Wait()
	if err := errors.Join(ends[:]...); err != nil || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"link":"ring"`) {
		t.Errorf("%v, printed %s", err, &out)
	}
}
