//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/baseline"
)

// Programs are the paths of the programs that are compared.
type Programs struct {
	Rawlane string // makes its own namespaces, like those of netpair
	C       string // "" without a C compiler
}

// Build builds the programs into dir.
func Build(ctx context.Context, dir string) (p Programs, err error) {
	p.Rawlane = filepath.Join(dir, "rawlane")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", p.Rawlane,
		"github.com/rawlane/rawlane/cmd/rawlane").CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("build the command (run this in the repository): %w\n%s", err, out)
	}
	p.C, err = baseline.Build(dir)
	return p, err
}

// Command makes a run of rawlane. The end of ctx is SIGTERM, so that it ends its processes.
func (p *Programs) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Rawlane, args...)
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
	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var l T
		err := from.Decode(&l)
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unexpected output %q of rawlane: %w", out, err)
		}
		lines = append(lines, l)
	}
}
