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
)

// Rawlane is the command that users run. It makes its own namespaces, like those of netpair.
type Rawlane struct{ path string }

// BuildRawlane builds the command into dir.
func BuildRawlane(ctx context.Context, dir string) (Rawlane, error) {
	r := Rawlane{filepath.Join(dir, "rawlane")}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", r.path,
		"github.com/rawlane/rawlane/cmd/rawlane").CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("build the command (run this in the repository): %w\n%s", err, out)
	}
	return r, nil
}

// Command makes a run of the command. The end of ctx is SIGTERM, so that it ends its processes.
func (r Rawlane) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Lines runs "rawlane bench ARGS --json" and returns the lines that it prints.
func Lines[T any](ctx context.Context, r Rawlane, args ...string) (lines []T, err error) {
	cmd := r.Command(ctx, slices.Concat([]string{"bench"}, args, []string{"--json"})...)
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
