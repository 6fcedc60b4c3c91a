package udp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/udp"
)

func mac(n int) transport.MAC { return transport.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

// open opens a link of this host that knows others, for as long as the test.
func open(t testing.TB, n int, listen string, others ...*udp.Link) *udp.Link {
	t.Helper()
	cfg := udp.Config{MAC: mac(n)}
	for _, o := range others {
		cfg.Stations = append(cfg.Stations, udp.Station{Addr: o.Addr().String(), MAC: o.MAC()})
	}
	l, err := udp.Open(listen, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// pair opens two links that know each other.
func pair(t testing.TB, listen string) (a, b *udp.Link) {
	t.Helper()
	a = open(t, 1, listen)
	b = open(t, 2, listen, a)
	if err := a.AddStation(udp.Station{Addr: b.Addr().String(), MAC: b.MAC()}); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestLink(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(listen, func(t *testing.T) {
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return pair(t, listen) })
		})
	}
}

// send sends frames, however often the link is busy.
func send(t testing.TB, l *udp.Link, frames ...transport.Frame) {
	t.Helper()
	for len(frames) > 0 {
		n, err := l.Send(frames)
		if err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
		frames = frames[n:]
	}
}

// receive polls until there are n frames, and returns copies of their payloads.
func receive(t testing.TB, l *udp.Link, n int) (payloads [][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	frames := make([]transport.Frame, 7)
	for len(payloads) < n {
		if err := l.Wait(ctx); err != nil {
			t.Fatalf("%d of %d frames: %v", len(payloads), n, err)
		}
		came, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:came] {
			payloads = append(payloads, append([]byte(nil), f.Payload...))
		}
	}
	return payloads
}

// arrives reports whether a payload is among those that arrive within 10 ms.
func arrives(t testing.TB, l *udp.Link, want string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	frames := make([]transport.Frame, 7)
	for l.Wait(ctx) == nil {
		n, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:n] {
			if strings.HasPrefix(string(f.Payload), want) {
				return true
			}
		}
	}
	return false
}

func frame(to transport.MAC, payload []byte) transport.Frame {
	return transport.Frame{Dst: to, EtherType: transport.EtherTypeDefault, Payload: payload}
}

// Frames of any lengths, to two stations in turn or in a row, arrive whole and in order: trains are
// cut where they were coupled.
func TestTrains(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	a, b := pair(t, "127.0.0.1:0")
	c := open(t, 3, "127.0.0.1:0", a)
	if err := a.AddStation(udp.Station{Addr: c.Addr().String(), MAC: c.MAC()}); err != nil {
		t.Fatal(err)
	}
	for round := range 50 {
		var frames []transport.Frame
		var want [2][][]byte
		size := r.IntN(a.MTU()) + 1
		for range 60 {
			if r.IntN(4) == 0 {
				size = r.IntN(a.MTU()) + 1
			}
			to := 0
			if r.IntN(8) == 0 {
				to = 1
			}
			payload := make([]byte, size)
			for i := range payload {
				payload[i] = byte(r.Uint32())
			}
			want[to] = append(want[to], payload)
			frames = append(frames, frame([]transport.MAC{b.MAC(), c.MAC()}[to], payload))
		}
		send(t, a, frames...)
		for to, l := range []*udp.Link{b, c} {
			got := receive(t, l, len(want[to]))
			for i := range want[to] {
				if string(got[i]) != string(want[to][i]) {
					t.Fatalf("seed %d, round %d: frame %d of %d bytes is one of %d", seed, round, i, len(want[to][i]), len(got[i]))
				}
			}
		}
	}
}

// It is enough to know one station: who is heard by a frame for all is introduced.
func TestIntroductions(t *testing.T) {
	const n = 5
	links := []*udp.Link{open(t, 0, "127.0.0.1:0")}
	for k := 1; k < n; k++ {
		links = append(links, open(t, k, "127.0.0.1:0", links[0]))
	}
	for _, l := range links[1:] { // each is heard by the first, and by those that were heard before it
		send(t, l, frame(transport.Broadcast, []byte("here")))
		receive(t, links[0], 1)
	}
	frames := make([]transport.Frame, 8)
	for from := 1; from < n; from++ {
		for to := 1; to < n; to++ {
			if from == to {
				continue
			}
			want := fmt.Sprintf("from %d to %d", from, to)
			// The introduction lies in the queue before it, or is on its way there: both poll, and what
			// is sent before that is lost.
			for tries := 1; ; tries++ {
				_, _ = links[from].Poll(frames)
				send(t, links[from], frame(mac(to), []byte(want)))
				if arrives(t, links[to], want) {
					break
				}
				if tries == 1000 {
					t.Fatalf("%q has not arrived", want)
				}
			}
		}
	}
}

func TestOpen_Faults(t *testing.T) {
	taken := open(t, 1, "127.0.0.1:0")
	for name, c := range map[string]struct {
		listen string
		cfg    udp.Config
		want   string
		is     error
	}{
		"no address":                {":7401", udp.Config{}, "such as 10.0.0.1:7401", nil},
		"two ports":                 {"127.0.0.1:7401:7402", udp.Config{}, "such as 10.0.0.1:7401", nil},
		"another host's":            {"198.51.100.1", udp.Config{}, "(no interface here has 198.51.100.1: ip addr lists", syscall.EADDRNOTAVAIL},
		"in use":                    {taken.Addr().String(), udp.Config{}, "address already in use (another program has it: end that one, or give another port)", syscall.EADDRINUSE},
		"free port, no MAC":         {"127.0.0.1:0", udp.Config{}, "set Config.MAC", nil},
		"a group's MAC":             {"127.0.0.1:0", udp.Config{MAC: transport.Broadcast}, "a group's address", nil},
		"negative buffer":           {"127.0.0.1:0", udp.Config{MAC: mac(1), ReceiveBuffer: -1}, "negative", nil},
		"negative MTU":              {"127.0.0.1:0", udp.Config{MAC: mac(1), MTU: -1}, "want 1 to", nil},
		"MTU over UDP's":            {"127.0.0.1:0", udp.Config{MAC: mac(1), MTU: 65500}, "want 1 to 65489", nil},
		"no such service":           {"127.0.0.1:no-such-service", udp.Config{}, "lookup udp/no-such-service", nil},
		"station of a family":       {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "[::1]:9"}}}, "same family", nil},
		"station twice":             {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "127.0.0.1:9"}, {Addr: "127.0.0.1:9"}}}, "known already", nil},
		"station nowhere":           {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "127.0.0.1:"}}}, "such as 10.0.0.1:7401", nil},
		"station of a group":        {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "127.0.0.1:9", MAC: transport.Broadcast}}}, "a group's address", nil},
		"station of port 0":         {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "127.0.0.1:0"}}}, `udp 127.0.0.1:0: open: add a station: address "127.0.0.1:0": nobody listens on port 0`, nil},
		"seed of port 0":            {"127.0.0.1:0", udp.Config{Seeds: []string{"127.0.0.1:0"}}, "nobody listens on port 0", nil},
		"station of no port":        {"127.0.0.1:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "127.0.0.1:65536"}}}, "port 65536: want 65535 at most", nil},
		"seed of no port":           {"127.0.0.1:0", udp.Config{Seeds: []string{"node2:99999999999999999999"}}, "port 99999999999999999999: want 65535 at most", nil},
		"a group of a family":       {"127.0.0.1:0", udp.Config{MAC: mac(1), Group: netip.MustParseAddr("ff12::1"), Interface: "lo"}, "no IP multicast group", nil},
		"no group":                  {"127.0.0.1:0", udp.Config{MAC: mac(1), Group: netip.MustParseAddr("10.0.0.1"), Interface: "lo"}, "no IP multicast group", nil},
		"seed nowhere":              {"127.0.0.1:0", udp.Config{Seeds: []string{"a b"}}, "SRV records such as", nil},
		"seed of a family":          {"127.0.0.1:0", udp.Config{Seeds: []string{"[::1]:9"}}, "same family", nil},
		"station of no interface":   {"[::1]:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "[fe80::1%no-such]:9"}}}, `interface "no-such"`, transport.ErrNoInterface},
		"station of some interface": {"[::1]:0", udp.Config{MAC: mac(1), Stations: []udp.Station{{Addr: "[fe80::1]:9"}}}, "such as fe80::1%eth0", nil},
		"seed of no interface":      {"[::1]:0", udp.Config{MAC: mac(1), Seeds: []string{"[fe80::1%no-such]:9"}}, `interface "no-such"`, transport.ErrNoInterface},
		"seed of some interface":    {"[::1]:0", udp.Config{MAC: mac(1), Seeds: []string{"[fe80::1]:9"}}, "such as fe80::1%eth0", nil},
		"service without a name":    {"127.0.0.1:0", udp.Config{Seeds: []string{"srv:"}}, "no name of SRV records", nil},
		"service with a port":       {"127.0.0.1:0", udp.Config{Seeds: []string{"srv:a:53"}}, "no name of SRV records", nil},
		"seeds and a group": {"127.0.0.1:0", udp.Config{Seeds: []string{"127.0.0.1:9"}, Group: netip.MustParseAddr("239.1.1.1")},
			"set one of the two", nil},
		"a group nowhere": {"127.0.0.1:0", udp.Config{MAC: mac(1), Group: netip.MustParseAddr("239.1.1.1"), Interface: "no-such"},
			`join 239.1.1.1 on interface "no-such"`, nil},
	} {
		l, err := udp.Open(c.listen, c.cfg)
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := udp.OpenInterface("no-such-interface", udp.Config{}); !errors.Is(err, transport.ErrNoInterface) {
		t.Errorf("%v, want ErrNoInterface", err)
	}
}

// A link that is closed takes no stations.
func TestAddStation_AfterClose(t *testing.T) {
	l := open(t, 1, "127.0.0.1:0")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.AddStation(udp.Station{Addr: "127.0.0.1:9"}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// What is no frame, or of nobody's type, is counted or passed over, and stops nothing.
func TestPoll_StrangersDatagrams(t *testing.T) {
	a, b := pair(t, "127.0.0.1:0")
	stranger, err := net.Dial("udp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	spoofed := frame(b.MAC(), []byte("not a's"))
	spoofed.Src = a.MAC()
	for _, datagram := range [][]byte{nil, {1}, make([]byte, 13), make([]byte, 14), make([]byte, 2000), spoofed.AppendTo(nil)} {
		if _, err := stranger.Write(datagram); err != nil {
			t.Fatal(err)
		}
	}
	send(t, a, frame(b.MAC(), binary.BigEndian.AppendUint32(nil, 7)))
	if got := receive(t, b, 1); binary.BigEndian.Uint32(got[0]) != 7 {
		t.Errorf("%q was received", got)
	}
	if c := b.Counters(); c.RxFrames != 1 || c.RxMalformed != 4 { // three too short, one not from where a is
		t.Errorf("%+v", c)
	}
}

// A closed link takes no frames, whoever they are for, and counts none.
func TestSend_OfAClosedLink(t *testing.T) {
	a, b := pair(t, "127.0.0.1:0")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	before := a.Counters()
	for _, to := range []transport.MAC{b.MAC(), mac(9), transport.Broadcast} {
		if n, err := a.Send([]transport.Frame{frame(to, []byte("late"))}); n != 0 || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("to %v: %d are sent, %v", to, n, err)
		}
	}
	if after := a.Counters(); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
}
