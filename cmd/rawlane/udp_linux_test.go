package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// installed puts this program, under its name, where any user may run it, and returns the folder.
func installed(t *testing.T) string {
	t.Helper()
	return filepath.Dir(testbed.ProgramForNobody(t, "rawlane"))
}

// withoutNamespaces is the command, installed in a folder, as a user runs it who may not make
// network namespaces, nor user namespaces for them.
func withoutNamespaces(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), grantTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "rawlane"), args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "RAWLANE_USER_NAMESPACE=1", // Reexec does not try
		"PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR=/tmp")
	if os.Geteuid() == 0 {
		testbed.NeedNobody(t)
		cmd.SysProcAttr = testbed.AsNobody()
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// Without namespaces programs run side by side, over UDP, and one line says so.
func TestRun_WithoutNamespaces(t *testing.T) {
	dir := installed(t)
	for _, c := range []struct {
		args string
		want string // in what is printed
	}{
		{"run -n 3 sh -c 'rawlane node --hostfile $RAWLANE_HOSTFILE --node $RAWLANE_NODE'", `(?m)^\[1\] node 2  \[`},
		{"run -n 3 sh -c 'rawlane node --seeds $RAWLANE_SEEDS --listen $RAWLANE_LISTEN --node $RAWLANE_NODE --nodes 3'", `(?m)^\[2\] node 0  \[`},
		{"bench latency --link udp --iters 50 --size 64", `(?m)^64 `},
		{"bench barrier --link udp --iters 50 --nodes 3 --mode threads", `tree|auto|concurrent|shuffle`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			before, program, _ := strings.Cut(c.args, " sh -c ")
			args := strings.Fields(before)
			if program != "" {
				args = append(args, "sh", "-c", strings.Trim(program, "'"))
			}
			out, said, err := withoutNamespaces(t, dir, args...)
			if err != nil || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%v: %v, printed\n%s%s", args, err, out, said)
			}
			if n := strings.Count(said, "no network namespaces here: udp links on this host's loopback instead"); n != 1 {
				t.Errorf("said %d times that it is over UDP:\n%s", n, said)
			}
		})
	}
}

// Whoever asks for another link than UDP's does not get that.
func TestRun_WithoutNamespacesByRing(t *testing.T) {
	t.Parallel()
	_, said, err := withoutNamespaces(t, installed(t), "run", "-n", "2", "--link", "ring", "true")
	if err == nil || !strings.Contains(said, "CAP_SYS_ADMIN") {
		t.Errorf("%v: %s", err, said)
	}
}
