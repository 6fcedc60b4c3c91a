package gonet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// path makes connections to an echo at the other end of a path on which some messages, by their
// numbers, are lost.
func path(t *testing.T, roundTrip time.Duration, lost ...int) func(context.Context) (net.Conn, error) {
	var messages atomic.Int32
	return func(context.Context) (net.Conn, error) {
		own, other := net.Pipe()
		go func() { // until own is closed
			b := make([]byte, 64)
			for {
				n, err := other.Read(b)
				if err != nil {
					return
				}
				if slices.Contains(lost, int(messages.Add(1)-1)) {
					continue
				}
				time.Sleep(roundTrip)
				_, _ = other.Write(b[:n])
			}
		}()
		t.Cleanup(func() { _ = other.Close() })
		return own, nil
	}
}

// A deadline is one round trip's, however many there are and however long the path is.
func TestPing_LongPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 300 * time.Millisecond
		for _, p := range []*pinger{{timeout: tcpTimeout}, {timeout: udpTimeout, whole: true}} {
			p.dial = path(t, roundTrip)
			came := 0
			lost, err := p.ping(t.Context(), Load{Size: 4, Iters: 1000}, func(half time.Duration) error {
				if came++; half != roundTrip/2 {
					t.Errorf("half a round trip took %v", half)
				}
				return nil
			})
			if err != nil || lost != 0 || came != 1000 {
				t.Errorf("%v, %d lost, %d came", err, lost, came)
			}
		}
	})
}

// A lost datagram counts, and what comes late is for a socket that is closed. Too many in a row are an error, and
// so is one that TCP does not bring.
func TestPing_Losses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 10 * time.Millisecond
		record := func(half time.Duration) error {
			if half != roundTrip/2 {
				t.Errorf("half a round trip took %v", half)
			}
			return nil
		}
		p := &pinger{timeout: udpTimeout, whole: true, dial: path(t, roundTrip, 1, 7, 8)}
		lost, err := p.ping(t.Context(), Load{Size: 0, Warm: 5, Iters: 20}, record)
		if err != nil || lost != 2 {
			t.Errorf("%v, %d lost that count", err, lost)
		}
		p.dial = path(t, roundTrip, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		if _, err := p.ping(t.Context(), Load{Size: 4, Iters: 20}, record); err == nil || !strings.Contains(err.Error(), "10 messages in a row") {
			t.Errorf("all are lost: %v", err)
		}
		p = &pinger{timeout: tcpTimeout, dial: path(t, roundTrip, 3)}
		if _, err := p.ping(t.Context(), Load{Size: 4, Iters: 20}, record); err == nil {
			t.Error("a message over TCP has no answer, and no error")
		}
	})
}

// What is called empty is: a datagram of no bytes goes there and back.
func TestPing_Empty(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pc.Close() }()
	sizes := make(chan int, 3)
	go func() { // until pc is closed
		b := make([]byte, 64)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			sizes <- n
			_, _ = pc.WriteTo(b[:n], from)
		}
	}()
	to := netip.MustParseAddrPort(pc.LocalAddr().String())
	record := func(time.Duration) error { return nil }
	if lost, err := Ping(t.Context(), "udp", to, Load{Size: 0, Iters: 3}, record); err != nil || lost != 0 {
		t.Fatalf("%v, %d lost", err, lost)
	}
	for range 3 {
		if n := <-sizes; n != 0 {
			t.Errorf("a datagram of %d bytes was sent", n)
		}
	}
}
