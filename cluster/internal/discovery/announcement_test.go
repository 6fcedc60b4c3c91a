package discovery

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/transport"
)

func TestAnnouncementBytes(t *testing.T) {
	a := Announcement{Seeking: true, Size: 0x0102, NIC: 1, MACs: []transport.MAC{mac(1, 0), mac(1, 1)}, Name: "ab"}
	want := []byte{1, 1, 2, 1, 1, 2, 2, 2, 0, 0, 0, 0, 1, 2, 0, 0, 1, 0, 1, 'a', 'b'}
	got := a.Append(nil)
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	back, err := Parse(append(want, 0, 0, 0)) // padded
	if err != nil || !reflect.DeepEqual(back, a) {
		t.Errorf("%+v, %v", back, err)
	}
	a.Place = Place{Host: 0x0102030405060708, Cores: 0x8000000000000001, Usable: 0x0203, Path: transport.InProcess}
	want = append(want, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 2, 0)
	want[1] = 3
	if got := a.Append(nil); !slices.Equal(got, want) {
		t.Errorf("with a place: got %x, want %x", got, want)
	}
	if back, err := Parse(append(want, 0, 0, 0)); err != nil || !reflect.DeepEqual(back, a) {
		t.Errorf("with a place: %+v, %v", back, err)
	}
}

// What is read is what was written, to the limits, and what is beyond them is malformed.
func TestParse_Limits(t *testing.T) {
	for _, c := range []struct {
		name   string
		a      Announcement
		change func(b []byte) []byte // nil: none
		ok     bool
	}{
		{"seeking", Announcement{Seeking: true, Size: 3, MACs: station(1, 2).MACs, NIC: 1}, nil, true},
		{"not seeking", Announcement{Size: 3, MACs: station(1, 2).MACs}, nil, true},
		{"the largest", Announcement{Size: 0xffff, NIC: 15, MACs: station(1, 16).MACs, Name: strings.Repeat("n", 63)},
			nil, true},
		{"padded", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n"}, func(b []byte) []byte { return append(b, 0, 1) }, true},
		{"other flags", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { b[1] = 0xf8; return b }, true},
		{"failed", Announcement{Failed: true, Size: 2, MACs: station(1, 1).MACs}, nil, true},
		{"with a place", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n", Place: Place{Host: 1 << 63, Cores: 3, Usable: 2, Path: 1}},
			nil, true},
		{"a place of no host", Announcement{Size: 2, MACs: station(1, 1).MACs},
			func(b []byte) []byte { b[1] = flagPlace; return append(b, make([]byte, placeLen)...) }, false},
		{"a place cut off", Announcement{Size: 2, MACs: station(1, 1).MACs, Place: Place{Host: 1}},
			func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"no networks", Announcement{Size: 3}, nil, false},
		{"a network too many", Announcement{Size: 3, MACs: station(1, 17).MACs}, nil, false},
		{"by a network that it does not have", Announcement{Size: 3, NIC: 2, MACs: station(1, 2).MACs}, nil, false},
		{"another version", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { b[0]++; return b }, false},
		{"a name too long", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: strings.Repeat("n", 63)},
			func(b []byte) []byte { b[6]++; return append(b, 'n') }, false},
		{"a byte short", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n"}, func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"a head less one byte", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { return b[:6] }, false},
		{"a head alone", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { return b[:7] }, false},
		{"a zero address", Announcement{Size: 2, MACs: []transport.MAC{mac(1, 0), {}}}, nil, false},
		{"a group's address", Announcement{Size: 2, MACs: []transport.MAC{{3, 1}, mac(1, 0)}}, nil, false},
	} {
		b := c.a.Append(nil)
		if c.change != nil {
			b = c.change(b)
		}
		back, err := Parse(b)
		if c.ok && (err != nil || !reflect.DeepEqual(back, c.a)) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, back, err, c.a)
		}
		if !c.ok && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", c.name, back, err)
		}
	}
}

// Names end in error messages, on terminals.
func TestNames(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"printable", "höst-1", "höst-1"},
		{"an escape sequence", "a\x1b[2Jb", "a?[2Jb"},
		{"lines", "a\nb\r", "a?b?"},
		{"not UTF-8", "a\xffb", "a?b"},
		{"as long as may be", strings.Repeat("a", MaxName), strings.Repeat("a", MaxName)},
		{"too long", strings.Repeat("a", MaxName+1), strings.Repeat("a", MaxName)},
		{"too long, and no character begins", strings.Repeat("\x80", MaxName+1), ""},
		{"too long, and would be cut within a character", strings.Repeat("a", MaxName-1) + "ö", strings.Repeat("a", MaxName-1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Announcement{Size: 1, MACs: station(0, 1).MACs, Name: c.sent}
			if back, err := Parse(a.Append(nil)); err != nil || back.Name != c.want {
				t.Errorf("%q, %v; want %q", back.Name, err, c.want)
			}
		})
	}
}

// What is read can be written and read again, and is the same; if the name is printable, byte by byte.
func FuzzParse(f *testing.F) {
	for _, v := range fuzzseed.Variants(announce(station(1, 2), 3, true).Append(nil)) {
		f.Add(v)
	}
	placed := announce(station(1, 2), 3, true)
	placed.Place = Place{Host: 5, Cores: 3, Usable: 2, Path: 1}
	for _, v := range fuzzseed.Variants(placed.Append(nil)) {
		f.Add(v)
	}
	for _, name := range []string{"a\x1b\xff", strings.Repeat("a", MaxName-1) + "ö", strings.Repeat("a", 2*MaxName)} {
		f.Add((&Announcement{Size: 1, MACs: station(0, 1).MACs, Name: name}).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		again := a.Append(nil)
		back, err := Parse(again)
		if err != nil || !reflect.DeepEqual(back, a) {
			t.Fatalf("%+v became %+v, %v", a, back, err)
		}
		end := len(b)
		if a.Place.Host != 0 {
			end-- // a byte that is not looked at
		}
		if bytes.HasSuffix(b, []byte(a.Name)) && len(again) == len(b) && !slices.Equal(again[2:end], b[2:end]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
