//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// times are what benchstat prints of two commits, one of which is slower, and has a benchmark more.
const times = `,base,,head,,,
,sec/op,CI,sec/op,CI,vs base,P
mcd Rate/batch1-2,1.05e-08,∞,1.45e-08,∞,+38.10%,p=0.029 n=4
"mcd ""Old""",5e-08,∞,5e-08,∞,~,p=1.000 n=4
barrier Barrier-2,,,8e-07,∞,,
geomean,2.291e-08,,2.692e-08,,+17.51%,
`

func TestParseGeomean(t *testing.T) {
	got, err := parseGeomean(times)
	if err != nil || got != 17.51 {
		t.Errorf("%v, %v", got, err)
	}
	for limit, passes := range map[float64]bool{17: false, 17.51: true, 20: true, 0: false} {
		if err := judge(got, limit); (err == nil) != passes {
			t.Errorf("%v %% at most %v %%: %v", got, limit, err)
		}
	}
	quicker := strings.ReplaceAll(times, "+17.51%", "-3.00%")
	if got, err := parseGeomean(quicker); err != nil || got != -3 || judge(got, 0) != nil {
		t.Errorf("%v, %v", got, err)
	}
	nothing := ",base,,head,,,\n,sec/op,CI,sec/op,CI,vs base,P\ngeomean,,,8e-07,,,\n"
	if _, err := parseGeomean(nothing); err == nil || !strings.Contains(err.Error(), "no geometric mean") {
		t.Errorf("%v", err)
	}
}

func TestDiffers(t *testing.T) {
	for want, text := range map[bool]string{
		true:  times,
		false: strings.ReplaceAll(times, "1.05e-08", "1.45e-08"), // a benchmark that one lacks is no difference
	} {
		if got := differs(text); got != want {
			t.Errorf("%v of\n%s", got, text)
		}
	}
}

func TestParse(t *testing.T) {
	o, base, head, err := parse([]string{"-rounds", "3", "--fail-over", "2.5", "main"}, io.Discard)
	if err != nil || base != "main" || head != "HEAD" || o.rounds != 3 || o.failOver != 2.5 {
		t.Errorf("%+v %s %s %v", o, base, head, err)
	}
	for _, args := range [][]string{
		{}, {"a", "b", "c"}, {"-rounds", "0", "a"}, {"-benchtime", "0s", "a"}, {"-x", "a"}, {"-fail-over", "NaN", "a"},
		{"-only", "nowhere", "a"},
	} {
		var said strings.Builder
		if _, _, _, err := parse(args, &said); err == nil || !strings.Contains(said.String(), "Usage: go run ./bench/gate") {
			t.Errorf("%v: %v, said %s", args, err, said.String())
		}
	}
}

func TestChoose(t *testing.T) {
	if got, err := choose(suite, "^mcd"); err != nil || len(got) != 2 || got[0].dir != "mcd" {
		t.Errorf("%v, %v", got, err)
	}
	for _, only := range []string{"(", "nowhere"} {
		if _, err := choose(suite, only); err == nil {
			t.Errorf("%q: taken", only)
		}
	}
}

// Each package of the suite has what the suite names.
func TestSuite(t *testing.T) {
	for _, b := range suite {
		files, err := filepath.Glob(filepath.Join("..", "..", b.dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		for name := range strings.SplitSeq(b.names, "|") {
			name, _, _ = strings.Cut(name, "/")
			name = strings.TrimPrefix(strings.TrimSuffix(name, "$"), "^Benchmark")
			if !strings.Contains(all.String(), "func Benchmark"+name) {
				t.Errorf("%s has no Benchmark%s", b.dir, name)
			}
		}
	}
}

// Two commits are built in work trees, measured in turns, and the trees are gone afterwards.
func TestGate(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: builds two programs")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	repo := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	commit := func(subject, benchmark string) {
		t.Helper()
		files := map[string]string{
			"go.mod": "module example.org/m\n\ngo 1.26.0\n", "p/p.go": "package p\n",
			"p/p_test.go": "package p\n\nimport \"testing\"\n\n" + benchmark,
		}
		if err := os.MkdirAll(filepath.Join(repo, "p"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", ".")
		git("commit", "-q", "-m", subject)
	}
	git("init", "-q")
	commit("one", "func BenchmarkA(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
	commit("two", "func BenchmarkB(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
	g, err := open(t.Context(), repo, "HEAD~1", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	all := []benchmarks{{"p", "."}, {"absent", "."}}
	err = g.build(t.Context(), all)
	if err == nil {
		err = g.measure(t.Context(), options{rounds: 2, benchtime: time.Millisecond})
	}
	if err != nil {
		t.Fatal(err, g.close())
	}
	for i, want := range []string{"BenchmarkA", "BenchmarkB"} {
		tree := &g.trees[i]
		subject := []string{" one", " two"}[i]
		if text := tree.results.String(); strings.Count(text, "pkg: p\n"+want) != 2 || !strings.HasSuffix(tree.name, subject) {
			t.Errorf("%s: %s", tree.name, text)
		}
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if trees := strings.TrimSpace(git("worktree", "list")); strings.Contains(trees, "\n") {
		t.Errorf("left behind: %s", trees)
	}
	if _, err := open(t.Context(), repo, "HEAD", "nowhere"); err == nil || !strings.Contains(err.Error(), "commit nowhere") {
		t.Errorf("%v", err)
	}
	if trees := strings.TrimSpace(git("worktree", "list")); strings.Contains(trees, "\n") {
		t.Errorf("left behind by an error: %s", trees)
	}
}

// Benchmarks have as long as they are asked to take, twice over, and the rest of the package beside.
func TestPatienceOf(t *testing.T) {
	for _, c := range []struct {
		count     int
		benchtime time.Duration
		want      time.Duration
	}{{0, time.Minute, 2 * time.Minute}, {3, time.Minute, 8 * time.Minute}, {20, 30 * time.Millisecond, 121200 * time.Millisecond}} {
		if got := patienceOf(c.count, c.benchtime); got != c.want {
			t.Errorf("%d of %v: %v, want %v", c.count, c.benchtime, got, c.want)
		}
	}
}

// Benchmarks that do not end in their time are said to have taken longer, and not to have failed.
func TestBench_PatienceRunsOut(t *testing.T) {
	tree := &tree{dir: t.TempDir()}
	p := program{path: filepath.Join(tree.dir, "sleeps")}
	if err := os.WriteFile(p.path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.bench(t.Context(), p, "1x", 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "took more than 50ms") {
		t.Errorf("%v", err)
	}
}

// Work trees of others stay in the repository's list, also if their folders are not there for the
// moment, as on a disk that is not mounted.
func TestClose_OthersTreesStay(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	repo, away := t.TempDir(), filepath.Join(t.TempDir(), "away")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.org"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	git("worktree", "add", "-q", "--detach", away)
	if err := os.Rename(away, away+".unmounted"); err != nil {
		t.Fatal(err)
	}
	g, err := open(t.Context(), repo, "HEAD", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	// One that git was ended in the making of is locked.
	git("worktree", "lock", "--reason", "initializing", g.trees[1].dir)
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if trees := strings.Split(strings.TrimSpace(git("worktree", "list")), "\n"); len(trees) != 2 || !strings.HasPrefix(trees[1], away) {
		t.Errorf("%q, want the repository and %s", trees, away)
	}
	if _, err := os.Stat(g.dir); err == nil {
		t.Errorf("%s is left behind", g.dir)
	}
}

// Two commits without a benchmark in common are not compared.
func TestCommon(t *testing.T) {
	for text, want := range map[[2]string]bool{
		{"pkg: p\nBenchmarkA-2 1 2 ns/op\n", "pkg: p\nBenchmarkA-2 3 4 ns/op\n"}:  true,
		{"pkg: p\nBenchmarkA-2 1 2 ns/op\n", "pkg: q\nBenchmarkA-2 3 4 ns/op\n"}:  false,
		{"pkg: p\nBenchmarkA-2 1 2 ns/op\n", "pkg: p\nBenchmarkAB-2 3 4 ns/op\n"}: false,
		{"pkg: p\nBenchmarkA-2 1 2 ns/op\n", ""}:                                  false,
		{"", ""}:                                                                  false,
		{"pkg: p\nBenchmarkA-2 1 2 ns/op\n", "pkg: o\nBenchmarkB-2 1 2 ns/op\npkg: p\nBenchmarkA-2 3 4 ns/op\n"}: true,
	} {
		var g gate
		for i := range g.trees {
			g.trees[i].results.WriteString(text[i])
		}
		if got := g.common(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// envNobodyReads has this test be the program whose output nobody reads; its status is stillHere if
// it has outlived that.
const (
	envNobodyReads = "RAWLANE_GATE_NOBODY_READS"
	stillHere      = 3
)

// A write that nobody reads is an error, behind which the work trees are removed, and not the end
// of the process.
func TestUntilEnded_NobodyReads(t *testing.T) {
	if os.Getenv(envNobodyReads) != "" {
		ctx, _ := untilEnded()
		if _, err := io.WriteString(os.Stdout, "a table\n"); err == nil {
			t.Fatal("somebody reads")
		}
		<-ctx.Done()
		os.Exit(stillHere)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestUntilEnded_NobodyReads$")
	cmd.Env = append(os.Environ(), envNobodyReads+"=1")
	cmd.Stdout = writer
	ended := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(ended, &exit) || exit.ExitCode() != stillHere {
		t.Errorf("%v, want status %d", ended, stillHere)
	}
}
