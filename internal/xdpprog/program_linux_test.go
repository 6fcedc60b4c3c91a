package xdpprog_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/internal/xdpprog"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

var own = transport.MAC{2, 0, 0, 0, 0, 1}

// load loads the program with a socket for queue 0, for as long as the test.
func load(t *testing.T, promiscuous bool, scopes ...xdpprog.Scope) *xdpprog.Program {
	t.Helper()
	cfg := xdpprog.Config{
		EtherType: transport.EtherTypeDefault, MAC: own, Promiscuous: promiscuous, Queues: 1, Scopes: scopes,
	}
	testbed.NeedXDP(t, func(string) error {
		p, err := xdpprog.Load(cfg)
		if err == nil {
			err = p.Close()
		}
		return err
	})
	p, err := xdpprog.Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := xsk.Open(xsk.Config{Chunk: 2048, Receive: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := p.SetSocket(0, s.FD); err != nil {
		t.Fatal(err)
	}
	return p
}

// frame returns a frame to a station, with what, of 2 bytes each, behind the addresses.
func frame(to transport.MAC, what ...uint16) []byte {
	b := append(to[:], 2, 0, 0, 0, 0, 2)
	for _, w := range what {
		b = binary.BigEndian.AppendUint16(b, w)
	}
	return append(b, make([]byte, 60)...)
}

// Frames of the EtherType, plain or behind one tag, for this station, a group or all go to the
// socket. All others go on.
func TestProgram_Verdicts(t *testing.T) {
	const ours = uint16(transport.EtherTypeDefault)
	stranger := transport.MAC{2, 0, 0, 0, 0, 9}
	plain, promiscuous := load(t, false), load(t, true)
	for _, c := range []struct {
		name  string
		frame []byte
		to    *xdpprog.Program
		want  bool
	}{
		{"for this station", frame(own, ours), plain, true},
		{"tagged", frame(own, 0x8100, 0x2005, ours), plain, true},
		{"priority tag", frame(own, 0x8100, 0, ours), plain, true},
		{"service tag", frame(own, 0x88a8, 5, ours), plain, true},
		{"to all", frame(transport.Broadcast, ours), plain, true},
		{"to a group", frame(transport.MAC{3, 0, 0, 0, 0, 1}, 0x8100, 5, ours), plain, true},
		{"for another", frame(stranger, ours), plain, false},
		{"for another that differs in the first byte", frame(transport.MAC{6, 0, 0, 0, 0, 1}, ours), plain, false},
		{"for another, promiscuous", frame(stranger, ours), promiscuous, true},
		{"of another type", frame(own, 0x0800), plain, false},
		{"of another type, promiscuous", frame(own, 0x0800), promiscuous, false},
		{"of another type, behind a tag", frame(own, 0x8100, 5, 0x0800), plain, false},
		{"of a type of the same bytes, swapped", frame(own, 0xb588), plain, false},
		{"behind two tags", frame(own, 0x88a8, 5, 0x8100, 6, ours), plain, false},
		{"our type as the tag", frame(own, 0x8100, ours, 0x0800), plain, false},
		{"a header alone", frame(own, ours)[:14], plain, true},
		{"a tag, and no type behind it", frame(own, 0x8100, ours)[:16], plain, false},
	} {
		got, err := c.to.Run(c.frame)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got != c.want {
			t.Errorf("%s: to the socket %t, want %t", c.name, got, c.want)
		}
	}
}

// ports is a set of ports.
func ports(all ...int) (set [32]uint8) {
	for _, p := range all {
		set[p/8] |= 1 << (p % 8)
	}
	return set
}

// message is what is behind a frame's EtherType, as far as its cluster.
func message(kind, port byte, cluster uint32) []byte {
	b := []byte{0x10 | kind, 0, port, 0, 0, 0, 0, 0}
	return binary.BigEndian.AppendUint32(b, cluster)
}

// A program with scopes takes the messages of their clusters: to their ports, or to none. All others
// go on, tagged or not.
func TestProgram_Scopes(t *testing.T) {
	scopes := []xdpprog.Scope{
		{First: 5, Last: 5, Ports: ports(0, 7, 8, 255)},
		{First: 6, Last: 1 << 31, Ports: ports(254)},
		{First: 7, Last: 8, Ports: ports(100)},
	}
	for k := len(scopes); k < xdpprog.MaxScopes; k++ {
		scopes = append(scopes, xdpprog.Scope{First: -uint32(k), Last: -uint32(k), Ports: ports(k)})
	}
	p := load(t, false, scopes...)
	want := func(kind, port byte, cluster uint32) bool {
		for _, s := range scopes {
			if s.First <= cluster && cluster <= s.Last && (kind >= 4 || s.Ports[port/8]>>(port%8)&1 != 0) {
				return true
			}
		}
		return false
	}
	const ours = uint16(transport.EtherTypeDefault)
	for _, headers := range [][]uint16{{ours}, {0x8100, 5, ours}} {
		for _, cluster := range []uint32{0, 4, 5, 6, 7, 8, 9, 1 << 31, 1<<31 + 1, 1<<32 - 31, 1<<32 - 3, 1<<32 - 1} {
			for _, port := range []byte{0, 3, 7, 8, 31, 100, 254, 255} {
				for kind := range byte(16) {
					head := frame(own, headers...)[:12+2*len(headers)]
					f := append(append(head, message(kind, port, cluster)...), make([]byte, 40)...)
					got, err := p.Run(f)
					if err != nil || got != want(kind, port, cluster) {
						t.Fatalf("kind %d, port %d, cluster %d: to the socket %t, %v", kind, port, cluster, got, err)
					}
				}
			}
		}
	}
	taken := append(frame(own, ours)[:14], message(1, 7, 5)...)
	for n, want := range map[int]bool{len(taken): true, len(taken) - 1: false} {
		if got, err := p.Run(taken[:n]); err != nil || got != want {
			t.Errorf("%d bytes of a frame: to the socket %t, %v", n, got, err)
		}
	}
	other := append(frame(transport.MAC{2, 0, 0, 0, 0, 9}, ours)[:14], message(1, 7, 5)...)
	if got, err := p.Run(other); err != nil || got {
		t.Errorf("for another station: to the socket %t, %v", got, err)
	}
	if _, err := xdpprog.Load(xdpprog.Config{Queues: 1, Scopes: append(scopes, scopes[0])}); err == nil {
		t.Error("more scopes than there is room for")
	}
}
