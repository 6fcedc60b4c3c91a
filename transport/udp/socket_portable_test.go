//go:build !linux || rawlane_portable

package udp

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A socket whose reads fail for good is read now and then, and not as often as a core can.
func TestSocket_ReadsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := openSocket(netip.MustParseAddrPort("127.0.0.1:0"), "", netip.Addr{}, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		time.Sleep(time.Second) // virtual: it passes when the reader pauses
		if d := time.Since(begun); d != time.Second {
			t.Errorf("%v", d)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}

// Datagrams for which there is room leave, though a send of them takes longer than it waits for room.
func TestSocket_SendThatTakesLong(t *testing.T) {
	s, err := openSocket(netip.MustParseAddrPort("127.0.0.1:0"), "", netip.Addr{}, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	nobody := s.address(netip.MustParseAddrPort("127.0.0.1:9"))
	all := make([]datagram, 1<<14)
	for k := range all {
		all[k] = datagram{b: make([]byte, 1), to: &nobody}
	}
	if n, err := s.send(all); n != len(all) || err != nil {
		t.Errorf("%d of %d datagrams were taken: %v", n, len(all), err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
