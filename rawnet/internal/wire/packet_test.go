package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

func TestPacket(t *testing.T) {
	for _, c := range []struct{ bytes, to, from, data string }{
		{"\x01\x03\x01\x00dnscdata", "dns", "c", "data"},
		{"\x01\x01\x01\x00ab", "a", "b", ""},
		{"\x01\xff\xff\x00" + strings.Repeat("a", 255) + strings.Repeat("b", 255) + "c", strings.Repeat("a", 255), strings.Repeat("b", 255), "c"},
	} {
		if b := AppendPacket([]byte("x"), c.to, c.from, []byte(c.data)); string(b) != "x"+c.bytes {
			t.Errorf("%q, want %q", b, c.bytes)
		}
		to, from, data, ok := ParsePacket([]byte(c.bytes))
		if string(to) != c.to || string(from) != c.from || string(data) != c.data || !ok {
			t.Errorf("%q: %q, %q, %q, %v", c.bytes, to, from, data, ok)
		}
	}
	for what, b := range map[string]string{
		"nothing": "", "cut off": "\x01\x01\x01", "another version": "\x02\x01\x01\x00ab", "version 0": "\x00\x01\x01\x00ab",
		"no receiver": "\x01\x00\x01\x00b", "no sender": "\x01\x01\x00\x00a", "a reserved byte": "\x01\x01\x01\x01ab",
		"less than its services": "\x01\x01\x01\x00a", "less than the first": "\x01\x02\x01\x00",
	} {
		if _, _, _, ok := ParsePacket([]byte(b)); ok {
			t.Errorf("%s is a packet", what)
		}
	}
}

// FuzzPacket: what is parsed is what appending it gives.
func FuzzPacket(f *testing.F) {
	for _, v := range fuzzseed.Variants(AppendPacket(nil, "to", "me", []byte("data"))) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		to, from, data, ok := ParsePacket(b)
		if ok && !bytes.Equal(AppendPacket(nil, string(to), string(from), data), b) {
			t.Errorf("%x is parsed as %q, %q, %q", b, to, from, data)
		}
	})
}
