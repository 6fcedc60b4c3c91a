//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// clock is a time that each look moves on.
func clock(step time.Duration) func() time.Time {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time { now = now.Add(step); return now }
}

// counting is a unit that counts its steps, and breaks a promise at one of them.
func counting(layer string, goal, brokenAt uint64, calls *[]uint64) *unit {
	return &unit{
		layer: layer, name: "test", counts: "steps", goals: [3]uint64{goal, goal, goal}, pieces: [2]uint64{10, 10},
		work: func(_ context.Context, _ *workshop, cursor, size uint64) (result, error) {
			*calls = append(*calls, cursor)
			r := result{figures: map[string]uint64{"steps": size, "longest max": cursor}}
			if brokenAt > cursor && brokenAt <= cursor+size {
				r.violation = &violation{Repeat: "repeat it", Output: "broken"}
			}
			return r, nil
		},
	}
}

func newCampaign(t *testing.T, path string, units ...*unit) (*campaign, *bytes.Buffer) {
	t.Helper()
	s, err := openState(path, "c0ffee", release)
	if err != nil {
		t.Fatal(err)
	}
	out := new(bytes.Buffer)
	return &campaign{profile: release, units: units, state: s, out: out, now: clock(time.Second)}, out
}

func TestCampaign_TakesTurnsAndGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var a, b []uint64
	c, _ := newCampaign(t, path, counting("A", 30, 0, &a), counting("B", 20, 0, &b))
	c.until = c.now().Add(7 * time.Second) // each piece looks four times at the clock
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a) != 1 || len(b) != 1 {
		t.Fatalf("before the end of the time: pieces at %v and %v, want one of each", a, b)
	}
	c, _ = newCampaign(t, path, c.units...)
	if err := errors.Join(c.run(t.Context()), c.verdict()); err != nil {
		t.Fatal(err)
	}
	if len(a) != 3 || a[1] != 10 || a[2] != 20 || len(b) != 2 {
		t.Errorf("pieces at %v and %v, want 0 10 20 and 0 10", a, b)
	}
	if d := c.state.of(c.units[0]); d.Figures["steps"] != 30 || d.Figures["longest max"] != 20 || d.Seconds == 0 {
		t.Errorf("%+v, want 30 steps and a longest one of 20", d)
	}
}

func TestCampaign_AViolationStopsItsUnitAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var a, b []uint64
	for range 2 { // the second one finds it in the state
		c, out := newCampaign(t, path, counting("A", 100, 15, &a), counting("B", 30, 0, &b))
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.verdict(); !errors.Is(err, errViolation) || !strings.Contains(out.String(), "commit c0ffee: repeat it") {
			t.Errorf("%v, %s; want the violation and its line", err, out)
		}
	}
	if len(a) != 2 || len(b) != 3 {
		t.Errorf("pieces at %v and %v, want two and three", a, b)
	}
}

// Each of two units waits in each piece for one of the other.
func TestCampaign_Jobs(t *testing.T) {
	met := make(chan struct{})
	meet := func(u *unit, send bool) *unit {
		u.work = func(ctx context.Context, _ *workshop, _, size uint64) (result, error) {
			r := result{figures: map[string]uint64{"steps": size}}
			if send {
				select {
				case met <- struct{}{}:
				case <-ctx.Done():
				}
				return r, nil
			}
			select {
			case <-met:
			case <-ctx.Done():
			}
			return r, nil
		}
		return u
	}
	a, b := meet(counting("A", 30, 0, nil), true), meet(counting("B", 30, 0, nil), false)
	c, _ := newCampaign(t, filepath.Join(t.TempDir(), "state.json"), a, b)
	c.jobs = 3
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far more than it takes
	defer cancel()
	if err := c.run(ctx); err != nil {
		t.Fatal(err)
	}
	for _, u := range c.units {
		if d := c.state.of(u); d.Cursor != 30 {
			t.Errorf("%s: %d steps, want 30", u.key(), d.Cursor)
		}
	}
}

func TestCampaign_AJobThatFailsEndsTheOthers(t *testing.T) {
	bad, waits := counting("A", 10, 0, nil), counting("B", 10, 0, nil)
	broken := errors.New("does not build")
	began := make(chan struct{})
	bad.work = func(context.Context, *workshop, uint64, uint64) (result, error) {
		<-began
		return result{}, broken
	}
	waits.work = func(ctx context.Context, _ *workshop, _, _ uint64) (result, error) {
		close(began)
		<-ctx.Done()
		return result{}, ctx.Err()
	}
	c, _ := newCampaign(t, filepath.Join(t.TempDir(), "state.json"), bad, waits)
	c.jobs = 2
	if err := c.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

// What a command has started ends with it.
func TestCommand_EndsItsGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := (&workshop{root: t.TempDir()}).command(ctx, "sh", "-c", "sleep 600 & echo there; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "there\n" {
		t.Fatal(line, err)
	}
	cancel()
	over := make(chan struct{})
	go func() { // until all have closed it that have it
		_, _ = io.Copy(io.Discard, out)
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("what it has started goes on")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it has ended well")
	}
}

func TestCampaign_ATestThatRunsNothingIsAnError(t *testing.T) {
	u := counting("A", 10, 0, new([]uint64))
	u.counts = "nothing"
	c, _ := newCampaign(t, filepath.Join(t.TempDir(), "state.json"), u)
	if err := c.run(t.Context()); err == nil || !strings.Contains(err.Error(), "ran nothing") {
		t.Errorf("%v, want an error", err)
	}
}

func TestCampaign_ChecksFiguresAtTheGoal(t *testing.T) {
	u := counting("A", 20, 0, new([]uint64))
	u.check = func(f map[string]uint64, _ profile) error {
		if f["steps"] != 20 {
			t.Errorf("%v, want all steps", f)
		}
		return errors.New("too few")
	}
	c, _ := newCampaign(t, filepath.Join(t.TempDir(), "state.json"), u)
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.verdict(); !errors.Is(err, errViolation) {
		t.Errorf("%v, want a violation", err)
	}
}

func TestDetects(t *testing.T) {
	for _, c := range []struct {
		accused, late, all uint64
		good               bool
	}{{0, 0, 100, true}, {2, 1, 100, true}, {3, 0, 100, false}, {0, 2, 100, false}, {0, 0, 0, false}} {
		err := detects(map[string]uint64{"node-seconds": 1_000_000, "false accusations": c.accused,
			"detections": c.all, "detections after 5 timeouts": c.late}, release)
		if (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestPointsHit(t *testing.T) {
	for _, c := range []struct {
		p    profile
		n    uint64
		good bool
	}{{commit, 0, false}, {commit, 1, true}, {nightly, 999, false}, {release, 1000, true}} {
		if err := pointsHit(map[string]uint64{"frames": 0, "point: a": 5000, "point: b": c.n}, c.p); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Two campaigns at a time do not write over what each other has found.
func TestState_OfOneCampaignAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "state.json")
	first, err := lockState(path)
	if err != nil {
		t.Fatal(err)
	}
	var calls []uint64
	units := []*unit{counting("A", 10, 0, &calls)}
	second := options{only: -1, state: path}
	run := func() error {
		return second.campaign(t.Context(), t.TempDir(), nightly, units, io.Discard, io.Discard)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "--state") || len(calls) > 0 {
		t.Errorf("%v after %d pieces, want an error that says what to do, and none", err, len(calls))
	}
	if err := errors.Join(first.Close(), run()); err != nil || len(calls) != 1 {
		t.Errorf("%v after %d pieces, want one", err, len(calls))
	}
}

func TestState_OfAnotherProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	c, _ := newCampaign(t, path, counting("A", 10, 0, new([]uint64)))
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(path, "c0ffee", nightly); err == nil || !strings.Contains(err.Error(), "--state") {
		t.Errorf("%v, want an error that says what to do", err)
	}
}

// What was done counts at another commit where the tests of its package are the same, and there
// alone.
func TestCampaign_AtAnotherCommit(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module x\n")
	write("x.go", "package x\n")
	write("x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n")
	state := filepath.Join(t.TempDir(), "state.json")
	var whole, tests []uint64
	run := func(commit string, wholePieces, testPieces int) {
		t.Helper()
		s, err := openState(state, commit, release)
		if err != nil {
			t.Fatal(err)
		}
		a, b := counting("A", 20, 0, &whole), counting("B", 20, 0, &tests)
		b.pkg = "."
		c := &campaign{
			profile: release, units: []*unit{a, b}, state: s, out: io.Discard, now: clock(time.Second),
			shop: &workshop{root: root, dir: t.TempDir(), built: map[string]string{}},
		}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(whole) != wholePieces || len(tests) != testPieces {
			t.Errorf("%s: %d and %d pieces so far, want %d and %d", commit, len(whole), len(tests), wholePieces, testPieces)
		}
	}
	run("one", 2, 2)
	run("one", 2, 2)
	write("README", "more")
	run("two", 4, 2)
	write("x.go", "package x\n\nvar _ = 1\n\nfunc init() { println() }\n")
	run("three", 6, 4)
}

func TestJudge(t *testing.T) {
	failed := &exec.ExitError{}
	r, err := judge("x figures {\"a\":1,\"b max\":2}\n y figures {\"a\":3,\"b max\":1}\n", nil, "")
	if err != nil || r.violation != nil || r.figures["a"] != 4 || r.figures["b max"] != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = judge("seed 7: wrong\nrepeat: go test -seed=7\n", failed, "all")
	if err != nil || r.violation == nil || r.violation.Repeat != "go test -seed=7" {
		t.Errorf("%+v, %v; want the test's own line", r.violation, err)
	}
	if r, err = judge("panic", failed, "all"); err != nil || r.violation == nil || r.violation.Repeat != "all" {
		t.Errorf("%+v, %v; want the line of the piece", r.violation, err)
	}
	if _, err = judge("", errors.New("no such file"), ""); err == nil {
		t.Error("a test that does not start is no violation, and an error")
	}
}

func TestStart_WrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--commit", "--nightly"}, {"--release", "now"}, {"--release", "--layer", "L99"}, {"--hours", "-1", "--release"},
		{"--release", "--jobs", "0"}, {"--foo"}, {"--hours", "NaN", "--release"}, {"--hours", "1e300", "--release"},
		{"--release", "--layer", "L9", "--only", "1", "--state", "x"},
	} {
		var out, err bytes.Buffer
		if status := start(t.Context(), args, &out, &err); status != 2 || !strings.Contains(err.String(), "Usage") {
			t.Errorf("%q: status %d, %s; want 2 and the usage", args, status, &err)
		}
	}
}

// The line that repeats a violation does so each time, whatever else was done: the one piece is no
// part of a campaign's state.
func TestOnly_KeepsNoState(t *testing.T) {
	root := t.TempDir()
	var calls []uint64
	units := []*unit{counting("A", 30, 0, &calls)}
	run := func(o options) {
		t.Helper()
		if err := o.campaign(t.Context(), root, nightly, units, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	run(options{only: -1})
	for range 2 {
		run(options{only: 5})
	}
	if want := []uint64{0, 10, 20, 5, 5}; !slices.Equal(calls, want) {
		t.Errorf("pieces at %v, want %v", calls, want)
	}
}

func TestLayers_AreWhole(t *testing.T) {
	keys := map[string]bool{}
	all, err := layers(absolute(t, treeRoot))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if keys[u.key()] || u.counts == "" || u.work == nil || u.pieces[0] == 0 || u.pieces[1] == 0 || u.goals[release] == 0 {
			t.Errorf("%s: want a name of its own, what it counts, pieces, and a goal with --release", u.key())
		}
		keys[u.key()] = true
		o := options{profiles: [3]bool{release: true}, layers: u.key(), jobs: 1}
		if _, some, err := o.choose(all, nil); err != nil || len(some) != 1 {
			t.Errorf("--layer %q: %d units, %v; want that one", u.key(), len(some), err)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A cell that is interrupted leaves no histories behind: they tell nothing.
func TestRunCell_Interrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := gridUnit(2, 0).work(ctx, nil, 0, 1); err == nil {
		t.Error("want an error: it was interrupted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v, want an empty folder", left, err)
	}
}
