//go:build linux

package udp_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// An Open that fails, wherever it does, leaves nothing behind: the port is free, and no goroutine
// looks for seeds.
func TestOpen_FailsAndLeavesNothing(t *testing.T) {
	first, err := udp.Open("127.7.4.1:0", udp.Config{MAC: mac(1)}) // an address that other tests leave alone
	if err != nil {
		t.Fatal(err)
	}
	at := first.Addr().String()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	before := runtime.NumGoroutine()
	for what, cfg := range map[string]udp.Config{
		"MTU":                {MTU: 1 << 20},
		"station":            {Stations: []udp.Station{{Addr: "[::1]:7", MAC: mac(2)}}},
		"seed":               {Seeds: []string{"[::1]:7"}},
		"MTU with a seed":    {Seeds: []string{"node.invalid:7"}, MTU: 1 << 20, Resolver: resolver},
		"no such name":       {Stations: []udp.Station{{Addr: "node.invalid:7", MAC: mac(2)}}, Resolver: resolver},
		"two of one address": {Stations: []udp.Station{{Addr: "127.0.0.1:7", MAC: mac(2)}, {Addr: "127.0.0.1:8", MAC: mac(2)}}},
	} {
		for range 5 {
			if l, err := udp.Open(at, cfg); err == nil {
				t.Errorf("%s: opened", what)
				_ = l.Close()
			}
		}
		l, err := udp.Open(at, udp.Config{})
		if err != nil {
			t.Errorf("after %s: %v", what, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	left := func() int { return runtime.NumGoroutine() - before }
	for end := time.Now().Add(10 * time.Second); left() > 2 && time.Now().Before(end); { // resolvers end by themselves
		runtime.Gosched()
	}
	if n := left(); n > 2 {
		t.Errorf("%d goroutines are left", n)
	}
}

// Where the network takes more, as a loopback interface does, a frame has 9,000 bytes at most.
func TestLink_LargestMTU(t *testing.T) {
	if n := udp.LinkMTU(1<<16, netip.MustParseAddr("127.0.0.1")); n != 9000 {
		t.Errorf("MTU %d", n)
	}
	if n := udp.LinkMTU(9000+20+8+transport.MaxHeaderLen-1, netip.MustParseAddr("127.0.0.1")); n != 8999 {
		t.Errorf("MTU %d", n)
	}
}

// A link has the MTU that its Config says, as far as a datagram holds it.
func TestOpen_MTUAsSet(t *testing.T) {
	for _, mtu := range []int{1, 1234, 9001, 65489} {
		l, err := udp.Open("127.0.0.1:0", udp.Config{MAC: mac(1), MTU: mtu})
		if err != nil {
			t.Fatal(err)
		}
		if l.MTU() != mtu {
			t.Errorf("MTU %d, want %d", l.MTU(), mtu)
		}
		_ = l.Close()
	}
}
