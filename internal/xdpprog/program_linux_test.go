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
func load(t *testing.T, promiscuous bool) *xdpprog.Program {
	t.Helper()
	cfg := xdpprog.Config{EtherType: transport.EtherTypeDefault, MAC: own, Promiscuous: promiscuous, Queues: 1}
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
