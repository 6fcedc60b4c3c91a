package shm

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Hosts that have a folder in common, as by NFS, do not meet in it, and leave each other's sockets
// there, on which nobody listens as seen from the other one.
func TestFolder_OfTwoHosts(t *testing.T) {
	dir := Folder(t)
	first, err := open("test", "0000000a", Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	mac := transport.MAC{2, 0, 0, 0, 0, 1}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := first.folder.socket(mac)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: theirs}), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	second, err := open("test", "0000000b", Config{Dir: dir, MAC: mac})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Stations())+len(second.Stations()) != 0 {
		t.Errorf("stations: %v, %v", first.Stations(), second.Stations())
	}
	second.folder.sweep(mac)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{theirs, first.folder.socket(first.mac)} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the other host's socket: %v", err)
		}
	}
}

// A kernel has one number of eight digits for all of its links, and a segment has one folder for each.
func TestFolder_Name(t *testing.T) {
	id := kernel()
	if id != kernel() || !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(id) {
		t.Errorf("the kernel is %q, then %q", id, kernel())
	}
	l := opened(t, Folder(t), 1)
	if got, want := filepath.Base(l.Folder()), "test."+id; got != want {
		t.Errorf("the folder is %s, want %s", got, want)
	}
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err == nil && id == "811c9dc5" {
		t.Error("the kernel's number is not in it")
	}
}
