//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A variant that may fail is left out once it has; another one ends the run.
func TestRunRounds_LeftOut(t *testing.T) {
	failed := errors.New("not today")
	var turns [2]int
	var table Table
	b := Bench{Name: "test", Rounds: 3}
	variants := []Variant{
		{Name: "peer", MayFail: true, Run: func(context.Context) error { turns[0]++; return failed }},
		{Name: "ours", Run: func(context.Context) error {
			if turns[1]++; turns[1] == 3 {
				return failed
			}
			table.Add("ours", 1)
			return nil
		}},
	}
	if err := b.RunRounds(t.Context(), variants); !errors.Is(err, failed) || err.Error() != "ours: not today" {
		t.Errorf("%v", err)
	}
	if turns != [2]int{1, 3} {
		t.Errorf("%d turns, want 1 and 3", turns)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.RunRounds(ctx, variants[:1]); !errors.Is(err, failed) {
		t.Errorf("%v of a run that was ended", err)
	}
}

// A result that is missing in what the command prints is an error, and not a quick one, nor one that
// is left out in silence; so is a turn without any.
func TestRunRounds_MissingResults(t *testing.T) {
	useSpeed(t)
	p := &Programs{Rawlane: filepath.Join(t.TempDir(), "rawlane")}
	type line struct {
		Link string     `json:"link"`
		Size int        `json:"size_bytes"`
		P50  float64    `json:"p50_us"`
		CPU  [2]float64 `json:"cpu_percent"`
	}
	for prints, want := range map[string]string{
		`echo '{"link":"ring","size_bytes":64,"p50_us":0,"cpu_percent":[1,2]}'`: "",
		`echo '{"link":"ring","size_bytes":64,"cpu_percent":[1,2]}'`:            "ours: ours: no result: NaN",
		`echo '{"link":"ring","size_bytes":64,"p50_us":1}'`:                     "ours: ours: no result: NaN",
		`echo '{"link":"ring"}'`: "ours: no result",
		`:`:                      `unexpected output ""`,
	} {
		if err := os.WriteFile(p.Rawlane, []byte("#!/bin/sh\n"+prints+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var table Table
		b := Bench{Rounds: 1}
		err := b.RunRounds(t.Context(), []Variant{{Name: "ours", Run: func(ctx context.Context) error {
			lines, err := Lines[line](ctx, p, "latency")
			if err == nil && lines[0].Size == 64 {
				table.Add("ours", lines[0].P50, lines[0].CPU[1])
			}
			return err
		}}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", prints, err, want)
		}
	}
}

// A turn whose program waits for ever ends, and says that it took too long; a program of others is left
// out then, and the rest is measured.
func TestRunRounds_PatienceRunsOut(t *testing.T) {
	useSpeed(t)
	p := &Programs{Rawlane: filepath.Join(t.TempDir(), "rawlane")}
	if err := os.WriteFile(p.Rawlane, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var table Table
	b := Bench{Name: "test", Rounds: 2, patience: 100 * time.Millisecond}
	waits := func(ctx context.Context) error { _, err := Lines[struct{}](ctx, p, "latency"); return err }
	variants := []Variant{
		{Name: "peer", MayFail: true, Run: waits},
		{Name: "ours", Run: func(context.Context) error { table.Add("ours", 1); return nil }},
	}
	if err := b.RunRounds(t.Context(), variants); err != nil || len(table.Rows[0].Values) != 2 {
		t.Errorf("%v, %v", err, table.Rows)
	}
	err := b.RunRounds(t.Context(), []Variant{{Name: "ours", Run: waits}})
	if err == nil || !strings.HasPrefix(err.Error(), "ours: took more than 100ms: ") {
		t.Errorf("%v", err)
	}
}

// Who asks for more iterations has longer, in proportion; who asks for fewer no less.
func TestBench_Most(t *testing.T) {
	for _, c := range []struct {
		iters int
		want  time.Duration
	}{{100, turnPatience}, {1000, turnPatience}, {5000, 5 * turnPatience}, {math.MaxInt, 1000 * time.Hour}} {
		if got := (&Bench{Iters: c.iters, usual: 1000}).most(); got != c.want {
			t.Errorf("%d in place of 1000: %v, want %v", c.iters, got, c.want)
		}
	}
	if got := (&Bench{Iters: 5}).most(); got != 5*turnPatience {
		t.Errorf("without a default: %v", got)
	}
}

// What a variant has added is left out with it, also in the turn in which it failed; what another
// one has added to the same row stays.
func TestRunRounds_LeftOutWithItsResults(t *testing.T) {
	useSpeed(t)
	var table Table
	b := Bench{Name: "test", Rounds: 4}
	turns := 0
	err := b.RunRounds(t.Context(), []Variant{
		{Name: "ours", Run: func(context.Context) error { table.Add("ours", 1, 10); table.Add("shared", 2, 20); return nil }},
		{Name: "peer", MayFail: true, Run: func(context.Context) error {
			table.Add("peer", 3)
			table.Add("shared", 4, 40)
			if turns++; turns == 3 {
				table.Add("half", 5)
				return errors.New("not today")
			}
			return nil
		}},
	})
	if err != nil || turns != 3 {
		t.Errorf("%v, %d turns of the one that fails in its third", err, turns)
	}
	for _, r := range table.Rows {
		want := map[string]float64{"ours": 1, "shared": 2}[r.Name]
		if r.Rounds() != b.Rounds || r.Min() != want || r.Max() != want || r.Second() != 10*want {
			t.Errorf("%s: %v, beside them %v", r.Name, r.Values, r.second)
		}
	}
	if len(table.Rows) != 2 {
		t.Errorf("%d rows, want 2", len(table.Rows))
	}
}

// Numbers of nodes come in ascending order, each once: the last one is how large a bed must be.
func TestParseNodes(t *testing.T) {
	got, err := ParseNodes("8,2,32,2", 32)
	if want := []int{2, 8, 32}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", "2,", "1", "33", "-2", "two"} {
		if got, err := ParseNodes(text, 32); err == nil {
			t.Errorf("%q: %v, and no error", text, got)
		}
	}
}

// What is no flag is refused, and not passed over.
func TestBench_Arguments(t *testing.T) {
	for want, args := range map[bool][]string{true: nil, false: {"iters=100"}} {
		b := Bench{Rounds: 1, Iters: 100, MinIters: 100}
		if err := b.check(args); (err == nil) != want {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, b := range []Bench{{Iters: 100, MinIters: 100}, {Rounds: 1, Iters: 99, MinIters: 100}} {
		if err := b.check(nil); err == nil {
			t.Errorf("%d rounds of %d: taken", b.Rounds, b.Iters)
		}
	}
}

// Wrong flags end a program with status 2 and its usage, as those that package flag finds; all else
// with 1.
func TestReport_Statuses(t *testing.T) {
	_, nodes := ParseNodes("2,x", 8)
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{nil, 0, ""},
		{errors.New("no room"), 1, "test: no room\n"},
		{ErrNotMet, 1, "test: limits were not met\n"},
		{(&Bench{Rounds: 1}).check([]string{"iters=100"}), 2, `test: unexpected argument "iters=100"`},
		{(&Bench{}).check(nil), 2, "test: want -rounds 1 or more"},
		{nodes, 2, `test: -nodes "2,x": want numbers of 2 to 8`},
		{fmt.Errorf("run: %w", Misuse("want -size 4 to 1400")), 2, "test: run: want -size 4 to 1400"},
	} {
		var said strings.Builder
		status := report(&said, "test", c.err)
		usage := strings.Contains(said.String(), "Usage of ")
		if status != c.status || !strings.HasPrefix(said.String(), c.says) || usage != (c.status == 2) {
			t.Errorf("%v: status %d, said %q, want %d and %q", c.err, status, said.String(), c.status, c.says)
		}
	}
}
