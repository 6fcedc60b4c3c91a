package server

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// Who is refused a connection does not hold up the others by a descriptor that takes long to close,
// where the kernel lets clients send one.
func TestDismiss_HoldsUpNobody(t *testing.T) {
	s := serve(t, nil, "limit any links 0 memory 1M\n")
	path := filepath.Join(t.TempDir(), "old")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"}) // as before Linux 6.16
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, peer := testbed.Lingering(t)
	var clients []*net.UnixConn
	for _, oob := range [][]byte{unix.UnixRights(fd), nil} {
		c := dial(t, &service{socket: path})
		if _, _, err := c.WriteMsgUnix([]byte("{}"), oob, nil); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if err := unix.Close(fd); err != nil { // the message has the last one
		t.Fatal(err)
	}
	admitted := make(chan struct{})
	go func() { // ends when both are admitted
		defer close(admitted)
		for range clients {
			if u, err := l.AcceptUnix(); err == nil {
				s.admit(u)
			}
		}
	}()
	select {
	case <-admitted:
	case <-time.After(patience):
		t.Error("the second client waits for the first one's descriptor")
	}
	_ = peer.Close()
	<-admitted
	b := make([]byte, protocol.MaxMessage)
	for k, c := range clients {
		n, err := c.Read(b)
		if errors.Is(err, unix.ECONNRESET) { // it had sent something
			n, err = c.Read(b)
		}
		if err != nil || !strings.Contains(string(b[:n]), "has 0 links, all that it may have") {
			t.Errorf("client %d got %q, %v", k, b[:n], err)
		}
	}
}
