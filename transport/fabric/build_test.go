package fabric

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Helpers to build fabrics and look at them.

func newFabric(t testing.TB, cfg Config) *Fabric {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func connect(t testing.TB, a, b Device, p Port) *Cable {
	t.Helper()
	c, err := a.plug().f.Connect(a, b, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func attach(t testing.TB, d Device, st Station) *Link {
	t.Helper()
	l, err := d.plug().f.Attach(d, st)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// numbered makes an untagged frame whose payload begins with n.
func numbered(dst transport.MAC, n uint32) transport.Frame {
	p := binary.BigEndian.AppendUint32(nil, n)
	return transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: p}
}

func numberOf(f transport.Frame) uint32 { return binary.BigEndian.Uint32(f.Payload) }

func withTag(f transport.Frame, tag transport.Tag) transport.Frame {
	f.Tagged, f.Tag = true, tag
	return f
}

func send(t testing.TB, l *Link, frames ...transport.Frame) {
	t.Helper()
	if n, err := l.Send(frames); n != len(frames) || err != nil {
		t.Fatalf("%s: Send of %d frames: n=%d, %v", l.Name(), len(frames), n, err)
	}
}

// drain polls all frames in l's queue and copies their payloads.
func drain(t testing.TB, l *Link) []transport.Frame {
	t.Helper()
	var all []transport.Frame
	buf := make([]transport.Frame, 7)
	for {
		n, err := l.Poll(buf)
		if err != nil {
			t.Fatalf("%s: Poll: %v", l.Name(), err)
		}
		if n == 0 {
			return all
		}
		for _, f := range buf[:n] {
			f.Payload = slices.Clone(f.Payload)
			all = append(all, f)
		}
	}
}

// wantNumbers drains l and compares the frames' numbers.
func wantNumbers(t testing.TB, what string, l *Link, want ...uint32) {
	t.Helper()
	var got []uint32
	for _, f := range drain(t, l) {
		got = append(got, numberOf(f))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: received %v, want %v", what, got, want)
	}
}

func wantBusy(t testing.TB, what string, l *Link, f transport.Frame) {
	t.Helper()
	if n, err := l.Send([]transport.Frame{f}); n != 0 || !errors.Is(err, transport.ErrBusy) {
		t.Errorf("%s: n=%d, %v; want ErrBusy", what, n, err)
	}
}
