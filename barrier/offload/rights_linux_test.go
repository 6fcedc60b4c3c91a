package offload_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// openAs has another process open a unit, and returns what it says of it: "<nil>" if it has one.
func openAs(t *testing.T, attr *syscall.SysProcAttr) string {
	t.Helper()
	bed := testbed.ForTest(t, testbed.Config{})
	cmd := exec.Command(testbed.ProgramForNobody(t, "offload"))
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(os.Environ(), envHold+"=1"), attr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = bed.Node(0).Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // "" if it says nothing
	_ = cmd.Process.Kill()                           // it holds the unit, or has ended
	_ = cmd.Wait()
	return strings.TrimSpace(line)
}

const rightsText = "needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"

// Who has no right to load the program hears which ones it takes.
func TestUnit_WithoutRights(t *testing.T) {
	needUnits(t)
	testbed.NeedNobody(t)
	said := openAs(t, testbed.AsNobody())
	if !strings.HasPrefix(said, "offload eth0: load the XDP program: ") || !strings.Contains(said, rightsText) {
		t.Errorf("it says %q", said)
	}
}

// The capabilities that the error names are enough, for a user who has no others. Who lacks one of
// them hears of it, whatever the kernel says: without CAP_PERFMON it finds the program too large.
func TestUnit_WithTheRightsOfItsError(t *testing.T) {
	needUnits(t)
	testbed.NeedNobody(t)
	if said := openAs(t, testbed.AsNobodyWith(unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON)); said != "<nil>" {
		t.Errorf("with all: %q", said)
	}
	said := openAs(t, testbed.AsNobodyWith(unix.CAP_BPF, unix.CAP_NET_ADMIN))
	if said != "<nil>" && !strings.Contains(said, rightsText) { // a later kernel may take it
		t.Errorf("without CAP_PERFMON: %q", said)
	}
}
