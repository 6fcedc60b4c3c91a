package shm_test

import (
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport/shm"
)

// A packet without bytes, which reads like the connection's end, may bring descriptors all the
// same: they are given back.
func TestStranger_PassesDescriptorsWithNothing(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir})
	m := l.MAC()
	addr := &net.UnixAddr{Name: filepath.Join(shm.SegmentFolder(dir), hex.EncodeToString(m[:])), Net: "unixpacket"}
	r, w, err := os.Pipe() // whose reader hears of its end once nobody has the writer
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	c, err := net.DialUnix("unixpacket", nil, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	rights := unix.UnixRights(int(w.Fd()))
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		h := unix.Msghdr{Control: &rights[0]} // package unix would add a byte
		h.SetControllen(len(rights))
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), 0)
	})
	if err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	_ = w.Close() // the link's is the last one
	_ = r.SetReadDeadline(time.Now().Add(patience))
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v: the link keeps what it was passed", err)
	}
}
