package grant

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// A context that ends just when the reply comes leaves nothing behind: the connection serves the next
// exchange.
func TestExchangeLeavesNoDeadline(t *testing.T) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cancels := make(chan context.CancelFunc, 1)
	go func() { // until the session is closed
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, protocol.MaxMessage)
		answer := func() error {
			if _, err := c.Read(b); err != nil {
				return err
			}
			_, err := c.Write([]byte("{}"))
			return err
		}
		for answer() == nil {
			(<-cancels)() // once the reply is there
			if answer() != nil {
				return
			}
		}
	}()
	s := &session{socket: l.Addr().String()}
	if err := s.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &protocol.Request{Do: protocol.Open, Interface: "eth0"}
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		cancels <- cancel
		_, _, err := s.exchange(ctx, r)
		cancel()
		if err != nil { // it ended before the reply was read: the reply is for nobody
			if _, err := s.conn.Read(make([]byte, protocol.MaxMessage)); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.exchange(t.Context(), r); err != nil {
			t.Fatalf("the next exchange: %v", err)
		}
	}
}

// The service's socket is found once: a program that has gone to another folder since dials it again
// where the service was started anew.
func TestSession_OfAnotherFolder(t *testing.T) {
	t.Chdir(testbed.SocketDir(t))
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "s", Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // its folder is removed
	defer l.Close()
	go func() { // until the listener is closed
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			if _, err = c.Read(make([]byte, protocol.MaxMessage)); err == nil {
				_, _ = c.Write([]byte("{}"))
			}
			_ = c.Close()
		}
	}()
	s := newSession("s", protocol.Request{})
	defer s.close()
	for range 2 {
		if _, err := s.ask(&protocol.Request{Do: protocol.Lock, Interface: "eth0"}); err != nil {
			t.Error(err)
		}
		t.Chdir(t.TempDir())
	}
}
