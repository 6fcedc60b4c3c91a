package testbed

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// AsNobodyWith is how a process of that user starts with capabilities, by their numbers, as by
// setcap.
func AsNobodyWith(capabilities ...uintptr) *syscall.SysProcAttr {
	attr := AsNobody()
	attr.AmbientCaps = capabilities
	return attr
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

// NeedXDP skips the test where programs cannot be loaded into the kernel, as in a user namespace.
// As root it fails the test. probe tries it on an interface.
func NeedXDP(t testing.TB, probe func(ifname string) error) {
	t.Helper()
	bed := ForTest(t, Config{})
	err := bed.Node(0).Do(func() error { return probe(Interface(0)) })
	if err == nil {
		return
	}
	if os.Getenv(inside) == "" {
		t.Fatalf("no XDP, though we are root: %v", err)
	}
	t.Skip(err)
}

// ProgramForNobody puts this program under a name where that user may run it too, for as long as
// the test. It returns its path.
func ProgramForNobody(t testing.TB, name string) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, name)
	program, err := os.Executable()
	if err == nil && os.Link(program, path) != nil { // another file system, perhaps
		var b []byte
		if b, err = os.ReadFile(program); err == nil {
			err = os.WriteFile(path, b, 0o755)
		}
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}
