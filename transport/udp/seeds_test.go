package udp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// zone is a name server of the test's own: names, their addresses, and SRV records.
type zone struct {
	mu    sync.Mutex // guards what follows
	hosts map[string]netip.Addr
	srv   map[string][]netip.AddrPort // of a service; the targets are named by their addresses
	asked int
}

// resolver asks the zone alone.
func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go z.serve(server) // until the client closes
		return client, nil
	}}
}

// serve answers as over TCP: each message after its length.
func (z *zone) serve(c net.Conn) {
	defer c.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		answer := z.answer(b)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (z *zone) answer(question []byte) []byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	z.asked++
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	name := strings.TrimSuffix(q.Name.String(), ".")
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	ip, isHost := z.hosts[name]
	targets, isService := z.srv[name]
	switch {
	case !isHost && !isService:
		m.RCode = dnsmessage.RCodeNameError
	case isHost && q.Type == dnsmessage.TypeA && ip.Is4():
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
	case isHost && q.Type == dnsmessage.TypeAAAA && ip.Is6():
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
	case isService && q.Type == dnsmessage.TypeSRV:
		for _, at := range targets {
			target := "host-" + strings.ReplaceAll(at.Addr().String(), ".", "-") + ".example.org"
			z.hosts[target] = at.Addr()
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.SRVResource{
				Target: dnsmessage.MustNewName(target + "."), Port: at.Port()}})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

func (z *zone) set(service string, at ...netip.AddrPort) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.srv[service] = at
}

// seeded opens a link that knows seeds alone.
func seeded(t *testing.T, n int, z *zone, seeds ...string) *udp.Link {
	t.Helper()
	cfg := udp.Config{MAC: mac(n), Seeds: seeds}
	if z != nil {
		cfg.Resolver = z.resolver()
	}
	l, err := udp.Open("127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// heard sends frames for all until another link has one, and fails when that takes ten seconds. Both
// poll: an introduction may come first.
func heard(t *testing.T, from, by *udp.Link) {
	t.Helper()
	frames := make([]transport.Frame, 8)
	for start := time.Now(); time.Since(start) < 10*time.Second; {
		_, _ = from.Poll(frames) // introductions
		send(t, from, frame(transport.Broadcast, []byte("here")))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := by.Wait(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		n, err := by.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:n] {
			if f.Src == from.MAC() {
				return
			}
		}
	}
	t.Fatalf("%v was not heard by %v: %v", from.MAC(), by.MAC(), from.SeedErr())
}

// One seed is enough for two to be heard by each other, in whatever way the seed is named.
func TestSeeds(t *testing.T) {
	for _, kind := range []string{"an address", "a name", "a service"} {
		t.Run(kind, func(t *testing.T) {
			first := open(t, 1, "127.0.0.1:0")
			z := &zone{hosts: map[string]netip.Addr{"seed.example.org": netip.MustParseAddr("127.0.0.1")},
				srv: map[string][]netip.AddrPort{"_rawlane._udp.example.org": {first.Addr()}}}
			_, port, _ := net.SplitHostPort(first.Addr().String())
			seed := map[string]string{"an address": first.Addr().String(), "a name": "seed.example.org:" + port,
				"a service": "srv:_rawlane._udp.example.org"}[kind]
			a, b := seeded(t, 2, z, seed), seeded(t, 3, z, seed)
			heard(t, a, first)
			heard(t, first, a)
			heard(t, b, first) // and the first introduces it
			heard(t, a, b)
			heard(t, b, a)
		})
	}
}

// A seed that can lead nowhere is an error at once, and no name is looked up for it.
func TestSeeds_Impossible(t *testing.T) {
	for seed, want := range map[string]string{
		"foo:bar": `port "bar" is neither a number`, "foo:0": "nobody listens on port 0", "10.0.0.1:0": "nobody listens on port 0",
		"foo:65536": "port 65536: want 65535 at most", "foo:-1": `port "-1" is neither a number`,
		"10.0.0.300": "10.0.0.300 is no IP address", "10.0.0.300:7401": "10.0.0.300 is no IP address", "12": "12 is no IP address",
		"10.0.0.1.2.:7401": "no host's name ends in a number", "srv:": "no name of SRV records", "": "not an address",
	} {
		if err := udp.CheckSeed(seed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", seed, err, want)
		}
		l, err := udp.Open("127.0.0.1:0", udp.Config{Seeds: []string{seed}})
		if err == nil {
			t.Errorf("%q is taken by %v", seed, l.Close())
		}
	}
	for _, seed := range []string{"foo", "foo2:7401", "3com.example.org", "10.0.0.1", "fd00::1", "[fd00::1]:7401", "srv:_x._udp.example.org"} {
		if err := udp.CheckSeed(seed); err != nil {
			t.Errorf("%q: %v", seed, err)
		}
	}
}

// A service that has no records yet is asked again, and its hosts may change.
func TestSeeds_AreLookedUpAgain(t *testing.T) {
	first, second := open(t, 1, "127.0.0.1:0"), open(t, 2, "127.0.0.1:0")
	z := &zone{hosts: make(map[string]netip.Addr), srv: make(map[string][]netip.AddrPort)}
	const service = "_rawlane._udp.example.org"
	l := seeded(t, 3, z, "srv:"+service)
	for l.SeedErr() == nil {
		if t.Context().Err() != nil {
			t.Fatal("no error of a service that is not there")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_ = l.Wait(ctx)
		cancel()
	}
	if err := l.SeedErr(); !strings.Contains(err.Error(), service) || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
	z.set(service, first.Addr())
	heard(t, l, first)
	z.set(service, second.Addr())
	heard(t, l, second)
	if err := l.SeedErr(); err != nil {
		t.Error(err)
	}
}

// A name of another family is said to be one; a service that has hosts of both leads to those that can
// be reached.
func TestSeeds_InPart(t *testing.T) {
	first := open(t, 1, "127.0.0.1:0")
	z := &zone{hosts: map[string]netip.Addr{"six.example.org": netip.IPv6Loopback()}, srv: map[string][]netip.AddrPort{
		"_rawlane._udp.example.org": {netip.MustParseAddrPort("[::1]:9"), first.Addr()}}}
	seedErr := func(l *udp.Link) string {
		for end := time.Now().Add(10 * time.Second); l.SeedErr() == nil && time.Now().Before(end); {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_ = l.Wait(ctx)
			cancel()
		}
		return fmt.Sprint(l.SeedErr())
	}
	if err := seedErr(seeded(t, 2, z, "six.example.org:9")); !strings.Contains(err, "no address that 127.0.0.1:") {
		t.Error(err)
	}
	heard(t, seeded(t, 3, z, "srv:_rawlane._udp.example.org"), first)
	if err := seedErr(seeded(t, 4, z, "srv:_raw._udp.example.org", "six.example.org:9")); !strings.Contains(err, "no address that") ||
		!strings.Contains(err, "seed srv:_raw._udp.example.org: ") {
		t.Error(err)
	}
}

// A seed that was heard is a station: it gets one copy of a frame for all, and not two.
func TestSeeds_AreStationsOnceHeard(t *testing.T) {
	first := open(t, 1, "127.0.0.1:0")
	l := seeded(t, 2, nil, first.Addr().String())
	heard(t, l, first)
	heard(t, first, l)
	send(t, l, frame(transport.Broadcast, []byte("once")), frame(first.MAC(), []byte("last")))
	copies := 0
	for last := false; !last; {
		for _, b := range receive(t, first, 1) {
			switch string(b) {
			case "once":
				copies++
			case "last":
				last = true
			}
		}
	}
	if copies != 1 {
		t.Errorf("%d copies, want one", copies)
	}
}

// A link of every address of the host has one that others can compute, and no other host has.
func TestOpen_EveryAddress(t *testing.T) {
	l, err := udp.Open("0.0.0.0:0", udp.Config{Seeds: []string{"127.0.0.1:9"}})
	if err != nil {
		t.Skip(err) // a host with a loopback alone
	}
	defer l.Close()
	if l.MAC() == udp.StationMAC(l.Addr().String()) || l.MAC().IsZero() {
		t.Errorf("%v is that of %v: another host's link of every address has it, too", l.MAC(), l.Addr())
	}
}
