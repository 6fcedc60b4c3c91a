package xdp_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// Who has no right to open a link hears which ones it takes, and leaves no program.
func TestOpen_WithoutRights(t *testing.T) {
	need(t)
	testbed.NeedNobody(t)
	bed := testbed.ForTest(t, testbed.Config{})
	dir := t.TempDir()
	copied := filepath.Join(dir, "xdp") // where any user may run it
	b, err := os.ReadFile("/proc/self/exe")
	err = errors.Join(err, os.WriteFile(copied, b, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(os.Environ(), envHold+"=eth0"), testbed.AsNobody()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bed.Node(0).Start(cmd); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // "" if it says nothing
	if err := cmd.Wait(); err == nil {
		t.Error("it opened the link")
	}
	if !strings.HasPrefix(line, "xdp eth0: open: make the packet socket: ") || !strings.Contains(line, "needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF") {
		t.Errorf("it says %q", line)
	}
	if id := program(t, bed.Node(0)); id != 0 {
		t.Errorf("program %d is on the interface", id)
	}
}
