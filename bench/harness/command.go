//go:build linux

package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/internal/procgroup"
)

// Programs are the paths of the programs that are compared.
type Programs struct {
	Rawlane string // makes its own namespaces, like those of netpair
	C       string // "" without a C compiler

	Env []string // what runs of rawlane have in their environment beside this process's
}

// Kept names the environment's variable of a folder in which the programs are built, and stay: the
// next benchmark does not link them anew. It is made where it is not there yet.
const Kept = "RAWLANE_BENCH_PROGRAMS"

// Build builds the programs that are compared, into Dir or where Kept says.
func (b *Bench) Build(ctx context.Context) error {
	err := b.MakeDir()
	if err == nil {
		b.Programs, err = build(ctx, b.Dir)
	}
	return err
}

// build is Build into dir.
func build(ctx context.Context, dir string) (p Programs, err error) {
	folder := cmp.Or(os.Getenv(Kept), dir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return p, fmt.Errorf("%s: %w", Kept, err)
	}
	p.Rawlane = filepath.Join(folder, "rawlane")
	if err := BuildTool(ctx, "cmd/rawlane", p.Rawlane); err != nil {
		return p, err
	}
	p.C, err = baseline.Build(folder)
	return p, err
}

// BuildTool builds a command of this module, such as bench/barrier, as a file.
func BuildTool(ctx context.Context, tool, file string) error {
	cmd := GoTool(ctx, filepath.Dir(file), "build", "-o", file, "github.com/rawlane/rawlane/"+tool)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s (run this in the repository): %w\n%s", tool, err, out)
	}
	return nil
}

// GoTool makes a run of the go tool, whose own folder is in dir. The end of ctx ends it, and the
// compilers that it has started.
func GoTool(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir)
	procgroup.Own(cmd)
	cmd.Cancel = func() error { procgroup.End(cmd, true); return nil }
	return cmd
}

// Links lists the kinds of links that rawlane has, as --link completes them.
func (p *Programs) Links(ctx context.Context) (kinds []string, err error) {
	out, err := p.Command(ctx, "__complete", "bench", "latency", "--link", "").Output()
	if err != nil {
		return nil, fmt.Errorf("ask rawlane for its links: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if kind := strings.TrimSpace(line); kind != "" && !strings.HasPrefix(kind, ":") {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// CheckLinks refuses kinds of links that rawlane does not have, before the first of them is
// measured. They are a flag's.
func (p *Programs) CheckLinks(ctx context.Context, flag string, kinds ...string) error {
	all, err := p.Links(ctx)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if !slices.Contains(all, kind) {
			return Misuse("-%s %q: want %s", flag, kind, strings.Join(all, ", "))
		}
	}
	return nil
}

// Command makes a run of rawlane. The end of ctx is SIGTERM, so that it ends its processes.
func (p *Programs) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Rawlane, args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Lines runs "rawlane bench ARGS --json" and returns the lines that it prints.
func Lines[T any](ctx context.Context, p *Programs, args ...string) (lines []T, err error) {
	cmd := p.Command(ctx, slices.Concat([]string{"bench"}, args, []string{"--json"})...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return Parse[T](out)
}

// Line is Lines for a benchmark that prints one.
func Line[T any](ctx context.Context, p *Programs, args ...string) (line T, err error) {
	lines, err := Lines[T](ctx, p, args...)
	if err == nil && len(lines) != 1 {
		err = fmt.Errorf("unexpected output of rawlane: %d lines, want 1", len(lines))
	}
	if err != nil {
		return line, err
	}
	return lines[0], nil
}

// Parse reads the lines that rawlane prints, of which there are some. Numbers of a struct that a
// line does not have are NaN: no result of a turn may be made of them.
func Parse[T any](text []byte) (lines []T, err error) {
	for from := json.NewDecoder(bytes.NewReader(text)); ; {
		var l T
		clearNumbers(reflect.ValueOf(&l).Elem())
		err := from.Decode(&l)
		if errors.Is(err, io.EOF) && len(lines) > 0 {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unexpected output %q of rawlane: %w", text, err)
		}
		lines = append(lines, l)
	}
}

// clearNumbers sets all numbers with fractions to NaN.
func clearNumbers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(math.NaN())
	case reflect.Struct:
		for k := range v.NumField() {
			clearNumbers(v.Field(k))
		}
	case reflect.Array:
		for k := range v.Len() {
			clearNumbers(v.Index(k))
		}
	}
}
