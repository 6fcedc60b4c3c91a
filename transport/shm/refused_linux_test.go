package shm_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport/shm"
)

// A link that was refused, as the other one had no descriptors, or took it for dead, tries again
// after 10 ms and after 20, and says why it has to.
func TestStranger_RefusesTwice(t *testing.T) {
	dir := shm.Folder(t)
	if err := os.Mkdir(shm.SegmentFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(shm.SegmentFolder(dir), "020000000042"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	_ = ln.SetDeadline(time.Now().Add(patience))
	opened := make(chan *shm.Link, 1)
	go func() {
		l, err := shm.Open("test", shm.Config{Dir: dir, MAC: mac(1)})
		if err != nil {
			t.Error(err)
		}
		opened <- l
	}()
	var refused time.Time
	accept := func(pause time.Duration) *net.UnixConn {
		c, err := ln.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(refused); took < pause {
			t.Errorf("it has tried again after %v, want %v", took, pause)
		}
		return c
	}
	for _, pause := range []time.Duration{0, 10 * time.Millisecond} {
		c := accept(pause)
		refused = time.Now()
		_ = c.Close()
	}
	c := accept(20 * time.Millisecond)
	newStranger(t, c, nil).hear()
	l := <-opened
	t.Cleanup(func() { _ = l.Close() })
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	if err := l.MeetErr(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d refused this link", os.Getpid())) {
		t.Errorf("MeetErr: %v", err)
	}
}
