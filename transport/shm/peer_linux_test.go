package shm

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// The process at the other end is watched by its socket, or by its number where the kernel has no
// more: one that is there has a descriptor, which can be read once it has ended, and one that is
// gone has none.
func TestOwner_ByNumber(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	fd, ended := processDescriptor(cmd.Process.Pid)
	if fd < 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Skip("the kernel has no descriptors of processes")
	}
	defer func() { _ = unix.Close(fd) }()
	if ended || canRead(fd) {
		t.Error("a process that runs has ended")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // its status says that it was killed
	if !canRead(fd) {
		t.Error("a process that was killed runs")
	}
	if fd, ended = processDescriptor(cmd.Process.Pid); fd >= 0 || !ended {
		t.Errorf("of a process that is gone: %d, %v", fd, ended)
	}
}

// This process is there, and is not watched: what it has to tell are the ends of its links.
func TestOwner_Self(t *testing.T) {
	ours, _ := socketPair(t)
	if hasNoOwner(ours) {
		t.Error("this process has ended")
	}
	o := watchOwner(ours)
	defer o.stop()
	if o.file != nil || o.ended.Load() {
		t.Errorf("it is watched: %+v", o)
	}
}
