package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// from is a connection of a host's.
type from struct {
	net.Conn
	host   string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 7} }
func (f *from) Close() error         { f.closed = true; return nil }

// Who is one too many has the oldest connection closed of the host with the most: a host that takes
// all places takes them from itself, and the new one is let in.
func TestCrowd(t *testing.T) {
	for _, c := range []struct{ hosts, gone string }{
		{"1 2 3", ""},
		{"1 2 3 4", "0"},
		{"1 2 2 3", "1"},
		{"1 2 2 1", "0"},
		{"1 2 2 2 2 2", "1 2 3"},
		{"3 1 1 1 2", "1 2"},
		{"1 2 3 4 4", "0 3"},
	} {
		crowd, all := &crowd{most: 3}, []*from{}
		var guests []*guest
		for _, host := range strings.Fields(c.hosts) {
			f := &from{host: "192.0.2." + host}
			g := newGuest(context.Background(), f)
			defer g.end()
			crowd.add(g)
			all, guests = append(all, f), append(guests, g)
		}
		var gone []string
		for i, f := range all {
			if f.closed != (guests[i].ctx.Err() != nil) {
				t.Errorf("%s: %d: closed %v, but told %v", c.hosts, i, f.closed, guests[i].ctx.Err())
			}
			if f.closed {
				gone = append(gone, string(rune('0'+i)))
			}
		}
		if got := strings.Join(gone, " "); got != c.gone {
			t.Errorf("%s: closed %q, want %q", c.hosts, got, c.gone)
		}
		last := guests[len(guests)-1]
		for range 2 {
			crowd.remove(last)
			if want := min(3, len(all)) - 1; len(crowd.all) != want {
				t.Errorf("%s: %d are left, want %d", c.hosts, len(crowd.all), want)
			}
		}
	}
}

// Idle connections, as many as a read-only listener serves, keep no scraper from it.
func TestIdleConnectionsDoNotHoldScrapersUp(t *testing.T) {
	s := testServer(t, "")
	defer s.Close()
	addr, err := s.ListenReadOnly("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	for range maxScrapers {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	for range 3 {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(headerTimeout - time.Second)) // then the idle ones would be closed by themselves
		if _, err := io.WriteString(c, "GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 15)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200 OK" {
			t.Fatalf("a scraper: %q, %v", b, err)
		}
	}
	_ = idle[0].SetReadDeadline(time.Now().Add(headerTimeout - time.Second))
	if _, err := idle[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest idle connection: %v, want it closed", err)
	}
}
