//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/harness"
)

// benchstat is the program that compares. It has no releases.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// gate is two commits, each in a work tree, and what their benchmarks have printed.
type gate struct {
	repo, dir string
	trees     [2]tree // base, head
}

// tree is a commit in a work tree.
type tree struct {
	label    string // base or head
	name     string // of the commit: its hash and subject
	dir      string
	programs []program
	results  bytes.Buffer
}

// program is the benchmarks of a package, built.
type program struct {
	benchmarks
	path  string
	count int // of benchmarks
}

// open makes the work trees of two commits of a repository.
func open(ctx context.Context, repo, base, head string) (g *gate, err error) {
	g = &gate{repo: repo}
	if g.dir, err = os.MkdirTemp("", "rawlane-gate-"); err != nil {
		return nil, err
	}
	if g.dir, err = filepath.EvalSymlinks(g.dir); err != nil { // as git lists it
		return nil, err
	}
	for i, revision := range []string{base, head} {
		t := &g.trees[i]
		t.label = []string{"base", "head"}[i]
		t.dir = filepath.Join(g.dir, t.label)
		if t.name, err = g.git(ctx, "log", "-1", "--format=%h %s", revision, "--"); err == nil {
			_, err = g.git(ctx, "worktree", "add", "--quiet", "--detach", t.dir, revision)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("commit %s: %w", revision, err), g.close())
		}
	}
	return g, nil
}

// git runs git in the repository.
func (g *gate) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", g.repo}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// close removes the work trees: these alone, and also one that git was ended in the making of,
// which is locked. "git worktree prune" would remove those of others, too, whose folders are not
// there for the moment.
func (g *gate) close() error {
	ctx := context.Background()
	list, err := g.git(ctx, "worktree", "list", "--porcelain")
	errs := []error{err}
	for i := range g.trees {
		dir := g.trees[i].dir
		if strings.Contains(list+"\n", "worktree "+dir+"\n") {
			_, err := g.git(ctx, "worktree", "remove", "--force", "--force", dir)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(g.dir))...)
}

// build compiles the benchmarks of both commits. Those of a package that a commit lacks are left
// out.
func (g *gate) build(ctx context.Context, all []benchmarks) error {
	for i := range g.trees {
		t := &g.trees[i]
		for _, b := range all {
			if _, err := os.Stat(filepath.Join(t.dir, b.dir)); err != nil {
				fmt.Fprintf(os.Stderr, "%s has no package %s\n", t.label, b.dir)
				continue
			}
			p := program{benchmarks: b, path: filepath.Join(t.dir, strings.ReplaceAll(b.dir, "/", "_")+".test")}
			cmd := harness.GoTool(ctx, g.dir, "test", "-c", "-trimpath", "-o", p.path, "./"+b.dir)
			cmd.Dir = t.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: build %s: %w\n%s", t.label, b.dir, err, out)
			}
			if _, err := os.Stat(p.path); err != nil { // a package without tests makes none
				continue
			}
			lines, err := t.bench(ctx, p, "1x", patience)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", t.label, b.dir, err)
			}
			p.count = len(lines)
			t.programs = append(t.programs, p)
		}
	}
	return nil
}

// patience is how long the benchmarks of a package may take beyond their time, in one round.
const patience = 2 * time.Minute

// patienceOf is how long so many benchmarks may take: each runs for its time once or twice, until
// it knows how often that is.
func patienceOf(count int, benchtime time.Duration) time.Duration {
	return patience + 2*time.Duration(count)*benchtime
}

// measure runs the benchmarks in rounds: those of a package one after the other, base first in one
// round and head in the next.
func (g *gate) measure(ctx context.Context, o options) error {
	longest := max(len(g.trees[0].programs), len(g.trees[1].programs))
	for round := range o.rounds {
		for k := range longest {
			for i := range g.trees {
				t := &g.trees[(i+round)%len(g.trees)]
				if k >= len(t.programs) {
					continue
				}
				p := t.programs[k]
				lines, err := t.bench(ctx, p, o.benchtime.String(), patienceOf(p.count, o.benchtime))
				if err != nil {
					return fmt.Errorf("%s: %s: %w", t.label, p.dir, err)
				}
				fmt.Fprintf(&t.results, "pkg: %s\n%s", p.dir, strings.Join(lines, ""))
			}
		}
	}
	return nil
}

// bench runs the benchmarks of a package once, and returns a line for each.
func (t *tree) bench(
	ctx context.Context, p program, benchtime string, patience time.Duration,
) (lines []string, err error) {
	ranOut := fmt.Errorf("its benchmarks took more than %v", patience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ranOut)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, "-test.run=^$", "-test.bench="+p.names, "-test.benchmem",
		"-test.benchtime="+benchtime)
	cmd.Dir = filepath.Join(t.dir, p.dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", cmp.Or(context.Cause(ctx), err), out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Benchmark") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// compare runs benchstat on the results, and returns what it prints in a format.
func (g *gate) compare(ctx context.Context, units, format string) (string, error) {
	args := []string{"run", benchstat, "-format", format, "-table", ".config", "-ignore", "pkg",
		"-row", "pkg,.fullname", "-filter", ".unit:(" + units + ")"}
	for i := range g.trees {
		t := &g.trees[i]
		file := filepath.Join(g.dir, t.label+".txt")
		if err := os.WriteFile(file, t.results.Bytes(), 0o644); err != nil {
			return "", err
		}
		args = append(args, t.label+"="+file)
	}
	cmd := harness.GoTool(ctx, g.dir, args...)
	cmd.Dir = g.dir // outside any module: its version is in the name
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", benchstat, err, said.Bytes())
	}
	return string(out), nil
}

// benchstat prints the table of times, and that of allocations if they differ.
func (g *gate) benchstat(ctx context.Context, out io.Writer) error {
	text, err := g.compare(ctx, "sec/op", "text")
	if err != nil {
		return err
	}
	allocs, err := g.compare(ctx, "allocs/op", "csv")
	if err != nil {
		return err
	}
	more := "\nallocations: the same\n"
	if differs(allocs) {
		if more, err = g.compare(ctx, "allocs/op", "text"); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, text+more)
	return err
}

// common reports whether both commits have run a benchmark, of one package and name.
func (g *gate) common() bool {
	var names [len(g.trees)]map[string]bool
	for i := range g.trees {
		names[i] = make(map[string]bool)
		pkg := ""
		for line := range strings.Lines(g.trees[i].results.String()) {
			if name, found := strings.CutPrefix(line, "pkg: "); found {
				pkg = strings.TrimSpace(name)
				continue
			}
			names[i][pkg+" "+strings.Fields(line)[0]] = true
		}
	}
	for name := range names[0] {
		if names[1][name] {
			return true
		}
	}
	return false
}

// rows are those of benchstat's comma-separated values: a name, and for both commits a value and
// its interval; then the change, and how likely it is chance.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		fields, err := csv.NewReader(strings.NewReader(line)).Read()
		if err == nil && len(fields) == 7 && fields[0] != "" {
			all = append(all, fields)
		}
	}
	return all
}

// differs reports whether both commits have a benchmark with different values.
func differs(text string) bool {
	return slices.ContainsFunc(rows(text), func(r []string) bool {
		return r[0] != "geomean" && r[1] != "" && r[3] != "" && r[1] != r[3]
	})
}

// geomean returns by how many percent the geometric mean of times has changed.
func (g *gate) geomean(ctx context.Context) (float64, error) {
	text, err := g.compare(ctx, "sec/op", "csv")
	if err != nil {
		return 0, err
	}
	return parseGeomean(text)
}

// parseGeomean finds the change in benchstat's comma-separated values.
func parseGeomean(text string) (percent float64, err error) {
	for _, r := range rows(text) {
		if r[0] == "geomean" && r[1] != "" && r[3] != "" {
			return strconv.ParseFloat(strings.TrimSuffix(r[5], "%"), 64)
		}
	}
	return 0, fmt.Errorf("no geometric mean of times in\n%s", text)
}
