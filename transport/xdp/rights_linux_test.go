package xdp_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// Who has no right to open a link hears which ones it takes, and leaves no program.
func TestOpen_WithoutRights(t *testing.T) {
	need(t)
	testbed.NeedNobody(t)
	bed := testbed.ForTest(t, testbed.Config{})
	cmd := exec.Command(testbed.ProgramForNobody(t, "xdp"))
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
