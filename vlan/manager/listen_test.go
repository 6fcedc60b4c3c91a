package manager

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Connections beyond the limit wait until another ends; a closed one gives its place back once.
func TestConnectionsAreLimited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	inner, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{Listener: inner, slots: make(chan struct{}, 2), closed: make(chan struct{})}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range 4 {
		c, err := net.Dial("unix", path) // the system's queue takes them
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third was accepted")
	case <-time.After(20 * time.Millisecond):
	}
	_ = first.Close()
	_ = first.Close() // again: its place was given back already
	third := <-accepted
	select {
	case <-accepted:
		t.Error("a fourth was accepted")
	case <-time.After(20 * time.Millisecond):
	}
	_ = l.Close() // while Accept waits for a place
	if c, ok := <-accepted; ok {
		_ = c.Close()
		t.Error("one was accepted after Close")
	}
	_ = second.Close()
	_ = third.Close()
}
