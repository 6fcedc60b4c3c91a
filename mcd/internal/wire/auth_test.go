package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

// written returns the frame of a header of version 2 with a payload, over a used buffer.
func written(h *Header, a *Auth, payload string) []byte {
	b := bytes.Repeat([]byte{0xff}, AuthHeaderLen+len(payload))
	PutAuth(b, h, a, len(payload))
	clear(b[TagOffset : TagOffset+TagLen])
	copy(b[AuthHeaderLen:], payload)
	return b
}

// The bytes of version 2 are those of docs/wire-format.md, whatever the buffer held before.
func TestAuth_Golden(t *testing.T) {
	for _, c := range []struct {
		h    Header
		a    Auth
		want string
	}{
		{
			Header{Kind: Unicast, DstPort: 9, SrcPort: 7, From: 1, To: 2, Cluster: 0x01020304},
			Auth{KeyID: 5, Encrypted: true, Incarnation: 0x1122334455667788, Counter: 0x99aabbccddeeff00},
			"21520907000100020102030400050000" + "112233445566778899aabbccddeeff00",
		},
		{
			Header{Kind: Contact, From: 3, To: AllNodes, Tagged: true, TCI: 0x2065},
			Auth{KeyID: 15, Incarnation: 1, Counter: 2},
			"26f100000003ffff0000000000052065" + "00000000000000010000000000000002",
		},
	} {
		b := written(&c.h, &c.a, "hello")
		want := c.want + strings.Repeat("00", TagLen) + hex.EncodeToString([]byte("hello"))
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		var h Header
		var a Auth
		if fault := ParseAuth(append(b, 0, 0, 0), &h, &a); fault != OK || string(h.Payload) != "hello" || a != c.a {
			t.Errorf("%v, %q, %+v; want %+v", fault, h.Payload, a, c.a)
		}
		h.Payload = nil
		if !reflect.DeepEqual(h, c.h) {
			t.Errorf("%+v, want %+v", h, c.h)
		}
	}
}

func TestAuth_ParseFaults(t *testing.T) {
	frame := func(k Kind) []byte { return written(&Header{Kind: k}, &Auth{}, "abcd") }
	good := frame(Unicast)
	for _, c := range []struct {
		name    string
		b       []byte
		want    Fault
		payload string
	}{
		{"whole", good, OK, "abcd"},
		{"a contact", frame(Contact), OK, "abcd"},
		{"an introduction", frame(Introduction), OK, "abcd"},
		{"no payload", written(&Header{Kind: Reply}, &Auth{}, ""), OK, ""},
		{"no bytes", nil, TooShort, ""},
		{"a header less one byte", good[:AuthHeaderLen-1], TooShort, ""},
		{"version 1, and as short", []byte{0x11}, BadVersion, ""},
		{"version 1", append([]byte{0x11}, good[1:]...), BadVersion, ""},
		{"one byte less than it says", good[:len(good)-1], BadLength, "abc"},
		{"kind 0", frame(0), BadKind, "abcd"},
		{"kind 8", frame(Introduction + 1), BadKind, "abcd"},
	} {
		var h Header
		var a Auth
		if got := ParseAuth(c.b, &h, &a); got != c.want || string(h.Payload) != c.payload {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, got, h.Payload, c.want, c.payload)
		}
	}
}

func TestContactBody_Golden(t *testing.T) {
	c := ContactBody{Flags: ContactResponse, Place: PlaceSum{1, 2, 3, 4, 5, 6, 7}, Age: 0x0102, EchoedAge: 0x0304, Floor: 0x0506}
	for i := range c.Challenge {
		c.Challenge[i], c.Response[i] = byte(0xa0+i), byte(0xc0+i)
	}
	b := bytes.Repeat([]byte{0xff}, ContactLen)
	c.Put(b)
	want := "0201020304050607" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "0000000000000102" +
		"c0c1c2c3c4c5c6c7c8c9cacbcccdcecf" + "0000000000000304" + "0000000000000506"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	var back ContactBody
	if !back.Parse(b) || back != c {
		t.Errorf("%+v, want %+v", back, c)
	}
	if back.Parse(b[:ContactLen-1]) {
		t.Error("read a body that is too short")
	}
	if !c.Has(ContactResponse) || c.Has(ContactChallenge) || c.Has(ContactChallenge|ContactResponse) {
		t.Errorf("flags %#x", c.Flags)
	}
}

// What a receiver asks before it parses.
func TestLooksBeforeParse(t *testing.T) {
	one := make([]byte, HeaderLen+300)
	Put(one, &Header{Kind: Unicast, Cluster: 0x01020304}, make([]byte, 300))
	two := written(&Header{Kind: Unicast, Cluster: 0x05060708}, &Auth{}, "x")
	for name, c := range map[string]struct {
		b       []byte
		cluster uint32
		ok      bool
	}{
		"version 1": {one, 0x01020304, true}, "version 2": {two, 0x05060708, true},
		"version 3": {append([]byte{0x31}, one[1:]...), 0, false}, "short": {one[:HeaderLen-1], 0, false},
		"a header alone": {one[:HeaderLen], 0x01020304, true}, "nothing": {nil, 0, false},
	} {
		if cluster, ok := ClusterOf(c.b); cluster != c.cluster || ok != c.ok {
			t.Errorf("%s: cluster %#x, %v; want %#x, %v", name, cluster, ok, c.cluster, c.ok)
		}
	}
	if VersionOf(one) != Version || VersionOf(two) != AuthVersion || LengthOf(one) != 300 || LengthOf(two) != 1 {
		t.Errorf("versions %d and %d, lengths %d and %d", VersionOf(one), VersionOf(two), LengthOf(one), LengthOf(two))
	}
	var h Header
	if fault := Parse(one[:HeaderLen+10], &h); fault != BadLength || len(h.Payload) != 10 {
		t.Errorf("%v with %d bytes of payload, want what came", fault, len(h.Payload))
	}
	used := bytes.Repeat([]byte{0xff}, HeaderLen)
	Seal(used, &Header{Kind: Unicast})
	if used[1] != 0 || used[14] != 0 || used[15] != 0 {
		t.Errorf("a used buffer keeps flags %#x and TCI %x", used[1], used[14:16])
	}
	for _, flags := range []uint8{0, 1, 2, 4, 5, 7} {
		p := ProbeHead{Flags: 5}
		if got, want := p.Has(flags), flags != 2 && flags != 7; got != want {
			t.Errorf("flags 5 have %d: %v, want %v", flags, got, want)
		}
	}
	reused := bytes.Repeat([]byte{0xff}, ProbeHeadLen)
	(&ProbeHead{}).Put(reused)
	if !bytes.Equal(reused, make([]byte, ProbeHeadLen)) {
		t.Errorf("a used buffer keeps %x", reused)
	}
}
