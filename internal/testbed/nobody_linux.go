package testbed

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Nobody is a user without any right, and without capabilities.
const Nobody = 65534

// AsNobody is how a process starts as that user.
func AsNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
}

// NeedNobody skips the test where there is no second user, as in a user namespace.
func NeedNobody(t testing.TB) {
	t.Helper()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = AsNobody()
	if err := cmd.Run(); err != nil {
		users, _ := os.ReadFile("/proc/self/uid_map")
		if os.Geteuid() == 0 && strings.Contains(string(users), "4294967295") {
			t.Fatalf("no second user, though we are root: %v", err)
		}
		t.Skipf("no second user here: %v", err)
	}
}
