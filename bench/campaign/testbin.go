//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/procgroup"
)

// workshop is where the tree is built.
type workshop struct {
	root  string // of the tree
	dir   string // of programs
	mu    sync.Mutex
	built map[string]string // by what is built; guarded by mu, which is held while one builds

	profile     profile
	soak        time.Duration // how long one soak is
	mutantsFrom uint64        // which of the list is the first
}

// pieceTimeout is far more than a piece takes: one that takes longer hangs.
const pieceTimeout = 15 * time.Minute

// binary builds a package's tests, once.
func (w *workshop) binary(ctx context.Context, pkg string, flags ...string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := strings.Join(append(flags, pkg), " ")
	if path := w.built[key]; path != "" {
		return path, nil
	}
	path := filepath.Join(w.dir, strings.NewReplacer("/", "-", " ", "-", "=", "-").Replace(key)+".test")
	args := append([]string{"test", "-c", "-o", path}, flags...)
	if out, err := w.command(ctx, "go", append(args, "./"+pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	w.built[key] = path
	return path, nil
}

// digest tells a package's tests from others: it is the same wherever and at whatever commit the
// same code is built.
func (w *workshop) digest(ctx context.Context, pkg string) (string, error) {
	path, err := w.binary(ctx, pkg, "-trimpath", "-buildvcs=false")
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("digest of the tests of %s: %w", pkg, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b)), nil
}

// command is a command in the tree's root. The end of ctx ends it, with what it has started: Go's
// fuzzer leaves its programs behind. It is killed if this process is.
func (w *workshop) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = w.root
	procgroup.Own(cmd)
	procgroup.DieWithThread(cmd)
	cmd.Cancel = func() error { procgroup.End(cmd, false); return nil }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// seeded is a test that takes its first seed and the number of runs as flags, and logs its figures.
type seeded struct {
	pkg, test      string
	seedFlag, runs string // the names of the flags
	flags          []string
	limit          time.Duration // of a piece; 0: pieceTimeout
}

func (s seeded) work(ctx context.Context, w *workshop, cursor, size uint64) (result, error) {
	bin, err := w.binary(ctx, s.pkg)
	if err != nil {
		return result{}, err
	}
	return s.run(ctx, w, bin, cursor+1, size, cmp.Or(s.limit, pieceTimeout))
}

// run runs the test from a seed on.
func (s seeded) run(ctx context.Context, w *workshop, bin string, seed, n uint64, most time.Duration) (result, error) {
	args := []string{
		"-test.run", "^" + s.test + "$", "-test.v", "-test.timeout", most.String(),
		fmt.Sprintf("-%s=%d", s.seedFlag, seed), fmt.Sprintf("-%s=%d", s.runs, n),
	}
	cmd := w.command(ctx, bin, append(args, s.flags...)...)
	cmd.Dir = filepath.Join(w.root, s.pkg)
	out, err := cmd.CombinedOutput()
	repeat := fmt.Sprintf("go test ./%s -run '^%s$' -%s=%d -%s=%d", s.pkg, s.test, s.seedFlag, seed, s.runs, n)
	if s.limit > 0 {
		repeat += fmt.Sprintf(" -timeout %v", s.limit)
	}
	return judge(string(out), err, strings.Join(append([]string{repeat}, s.flags...), " "))
}

// searched is the search of a core's states, by these flags: of few of them with --commit.
type searched struct{ pkg, few, all string }

func (s searched) work(ctx context.Context, w *workshop, _, _ uint64) (result, error) {
	how := s.all
	if w.profile == commit {
		how = s.few
	}
	bin, err := w.binary(ctx, s.pkg)
	if err != nil {
		return result{}, err
	}
	args := []string{"-test.run", "^TestSearch$", "-test.v", "-test.timeout", "10h"}
	cmd := w.command(ctx, bin, append(args, strings.Fields(how)...)...)
	cmd.Dir = filepath.Join(w.root, s.pkg)
	out, err := cmd.CombinedOutput()
	return judge(string(out), err, fmt.Sprintf("go test ./%s -run '^TestSearch$' -v -timeout 10h %s", s.pkg, how))
}

var (
	figuresLine = regexp.MustCompile(`figures (\{.*\})`)
	repeatLine  = regexp.MustCompile(`repeat: (.*)`)
)

// judge reads what a test has printed. A test that fails has found a violation.
func judge(out string, err error, repeat string) (r result, _ error) {
	r.figures = map[string]uint64{}
	for _, m := range figuresLine.FindAllStringSubmatch(out, -1) {
		var f map[string]uint64
		if err := json.Unmarshal([]byte(m[1]), &f); err != nil {
			return r, fmt.Errorf("figures %s: %w", m[1], err)
		}
		addFigures(r.figures, f)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return r, nil
	case !errors.As(err, &exit):
		return r, fmt.Errorf("run: %w", err)
	}
	if m := repeatLine.FindStringSubmatch(out); m != nil {
		repeat = m[1]
	}
	r.violation = &violation{Repeat: repeat, Output: tail(out, 4000)}
	return r, nil
}

// tail is the last n bytes.
func tail(s string, n int) string { return s[max(0, len(s)-n):] }
