package udp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Seeds that have names are looked up again after pauses that double, up to half a minute; what stands
// in the way is told.
func TestSeeds_PausesDouble(t *testing.T) {
	away := errors.New("the name server is away")
	first := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, away }}
	if _, err := first.LookupHost(t.Context(), "seed.example.org"); err == nil { // package net reads its settings
		t.Fatal("an answer of nobody")
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var mu sync.Mutex // the questions for A and AAAA are asked side by side
		var asked []time.Duration
		r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if at := time.Since(begun); len(asked) == 0 || asked[len(asked)-1] != at {
				asked = append(asked, at)
			}
			return nil, away
		}}
		l := &Link{local: netip.MustParseAddrPort("10.0.0.1:7401"), socket: new(socket)}
		if err := l.seek([]string{"10.0.0.2:9", "seed.example.org:1"}, r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Second)
		l.seeker.end()
		const ms = time.Millisecond
		want := []time.Duration{0, 250 * ms, 750 * ms, 1750 * ms, 3750 * ms, 7750 * ms, 15750 * ms, 31750 * ms,
			61750 * ms, 91750 * ms, 121750 * ms}
		if !slices.Equal(asked, want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
		if err := l.SeedErr(); err == nil || !bytes.Contains([]byte(err.Error()), []byte("seed seed.example.org:1: lookup seed.example.org")) {
			t.Errorf("%v", err)
		}
		if seeds := l.stations.load().seeds; len(seeds) != 1 || seeds[0].at != netip.MustParseAddrPort("10.0.0.2:9") {
			t.Errorf("%+v", seeds)
		}
	})
}

// A link has 64 seeds at most, each once, and none where it is itself or cannot send to.
func TestSeeds_AreBounded(t *testing.T) {
	local := netip.MustParseAddrPort("10.0.0.1:7401")
	l := &Link{local: local, socket: new(socket)}
	texts := []string{"10.0.0.1:7401", "10.0.0.2:9", "10.0.0.2:9", "10.0.0.2:10"}
	if err := l.seek(texts, nil); err != nil {
		t.Fatal(err)
	}
	if l.seeker.stop != nil {
		t.Error("addresses are looked up")
	}
	if n := len(l.stations.load().seeds); n != 2 {
		t.Errorf("%d seeds, want 2", n)
	}
	found := [][]netip.AddrPort{{netip.MustParseAddrPort("[fd00::1]:9"), local}, nil}
	for n := range 100 {
		found[1] = append(found[1], netip.MustParseAddrPort(fmt.Sprintf("10.1.0.%d:9", n)))
	}
	if all := l.seedAddresses(found); len(all) != 64 || all[0].at.String() != "10.0.0.2:9" || all[2].at.String() != "10.1.0.0:9" {
		t.Errorf("%d seeds, want 64: %v", len(all), all[:3])
	}
	l.seeker.end() // nothing was to be looked up
}

// Where a name leads to nothing for a while, what it led to stays a seed.
func TestSeeds_StayWhileTheNameIsAway(t *testing.T) {
	var away atomic.Bool
	answer := func(question []byte) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
			return nil
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		if away.Load() {
			m.RCode = dnsmessage.RCodeNameError
		} else if q.Type == dnsmessage.TypeA {
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{10, 0, 0, 3}}}}
		}
		b, _ := m.Pack()
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	}
	serve := func(c net.Conn) {
		defer c.Close()
		for b := make([]byte, 2000); ; {
			if _, err := io.ReadFull(c, b[:2]); err != nil {
				return
			}
			question := b[2:][:binary.BigEndian.Uint16(b)]
			if _, err := io.ReadFull(c, question); err != nil {
				return
			}
			if _, err := c.Write(answer(question)); err != nil {
				return
			}
		}
	}
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server) // until the client closes
		return client, nil
	}}
	if _, err := r.LookupHost(t.Context(), "seed.example.org"); err != nil { // package net reads its settings
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := &Link{local: netip.MustParseAddrPort("10.0.0.1:7401"), socket: new(socket)}
		if err := l.seek([]string{"seed.example.org:9"}, r); err != nil {
			t.Fatal(err)
		}
		for i, pause := range []time.Duration{4 * time.Second, 8 * time.Second, 40 * time.Second} {
			gone := i == 1
			away.Store(gone)
			time.Sleep(pause)
			if err := l.SeedErr(); (err != nil) != gone {
				t.Errorf("the name is away: %v, and the link says %v", gone, err)
			}
			if seeds := l.stations.load().seeds; len(seeds) != 1 || seeds[0].at.String() != "10.0.0.3:9" {
				t.Errorf("the name is away: %v, and the seeds are %+v", gone, seeds)
			}
		}
		l.seeker.end()
	})
}
