package reliable

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// Golden bytes, both ways.
func TestHeader_Golden(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     Header
		bytes string
	}{
		{"hello: a challenge", Header{Kind: Hello, Src: 0x01020304, Sequence: 5},
			"23 00 0000 01020304 00000000 00000005 00000000"},
		{"hello-ack: a response and a challenge", Header{Kind: HelloAck, Src: 0x0a0b0c0d, Dst: 0x01020304, Sequence: 9, Ack: 5},
			"24 00 0000 0a0b0c0d 01020304 00000009 00000005"},
		{"data of requests, the first, nothing received", Header{Kind: Data, Src: 1, Dst: 2, Sequence: 1, Ack: 1, Credit: Window},
			"21 00 0100 00000001 00000002 00000001 00000001"},
		{"data of replies that acknowledges requests, acknowledge at once",
			Header{Kind: Data, Lane: Replies, AckNow: true, Src: 1, Dst: 2, Sequence: 0xffffffff, Ack: 7, Credit: heldCredit},
			"21 05 0040 00000001 00000002 ffffffff 00000007"},
		{"acknowledgement of replies, nothing out of order", Header{Kind: Ack, Lane: Replies, AckLane: Replies, Src: 1, Dst: 2, Ack: 0x80000000, Credit: Window},
			"22 03 0100 00000001 00000002 00000000 80000000"},
		{"acknowledgement of requests while they are held: that frame and the third, nothing behind the first 64",
			Header{Kind: Ack, Src: 1, Dst: 2, Ack: 7, Credit: heldCredit, SACK: SACK{5}},
			"22 00 0040 00000001 00000002 00000000 00000007 0000000000000005"},
		{"acknowledgement with a SACK of the third word alone",
			Header{Kind: Ack, Src: 1, Dst: 2, Ack: 7, Credit: Window, SACK: SACK{0, 0, 1 << 63}},
			"22 00 0100 00000001 00000002 00000000 00000007 0000000000000000 0000000000000000 8000000000000000"},
		{"acknowledgement with the longest SACK",
			Header{Kind: Ack, Src: 1, Dst: 2, Ack: 7, Credit: Window, SACK: SACK{1 << 63, 2, 3, 1<<63 | 5}},
			"22 00 0100 00000001 00000002 00000000 00000007 8000000000000000 0000000000000002 0000000000000003 8000000000000005"},
		{"bye", Header{Kind: Bye, Src: 0x0a0b0c0d, Dst: 0x01020304},
			"25 00 0000 0a0b0c0d 01020304 00000000 00000000"},
		{"bye ack", Header{Kind: ByeAck, Src: 0x01020304, Dst: 0x0a0b0c0d},
			"26 00 0000 01020304 0a0b0c0d 00000000 00000000"},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.bytes, " ", ""))
		if err != nil {
			t.Fatal(c.name, err)
		}
		b := make([]byte, maxAckLen)
		b = b[:c.h.put(b)]
		if string(b) != string(want) {
			t.Errorf("%s:\n%x, want\n%x", c.name, b, want)
		}
		var h Header
		if err := Parse(want, &h); err != nil || h != c.h {
			t.Errorf("%s: %+v, %v", c.name, h, err)
		}
	}
}

// Parse refuses frames of no or another version.
func TestParse_Malformed(t *testing.T) {
	good := make([]byte, HeaderLen)
	(&Header{Kind: Data, Src: 1}).put(good)
	for _, c := range []struct {
		name string
		at   int
		b    byte
	}{
		{"version 0", 0, 0x01}, {"version 1", 0, 0x11}, {"version 3", 0, 0x31}, {"no kind", 0, 0x20}, {"kind 7", 0, 0x27}, {"kind 15", 0, 0x2f},
		{"flag 8", 1, 0x08}, {"flag 128", 1, 0x80}, {"no incarnation", 7, 0},
	} {
		b := append([]byte(nil), good...)
		b[c.at] = c.b
		if err := Parse(b, new(Header)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for n := range HeaderLen {
		if err := Parse(good[:n], new(Header)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	ack := make([]byte, maxAckLen+9)
	(&Header{Kind: Ack, Src: 1, SACK: SACK{1, 1, 1, 1}}).put(ack)
	for n := range ack {
		err := Parse(ack[:n], new(Header))
		if fits := n >= HeaderLen && n <= maxAckLen && (n-HeaderLen)%8 == 0; fits != (err == nil) {
			t.Errorf("an acknowledgement of %d bytes: %v", n, err)
		}
	}
	ack[HeaderLen+15] = 0
	if err := Parse(ack[:HeaderLen+16], new(Header)); !errors.Is(err, ErrMalformed) {
		t.Errorf("an acknowledgement with a last word of 0: %v", err)
	}
}

// Kinds and states have names, also values out of range.
func TestNames(t *testing.T) {
	for k, name := range []string{"?", "data", "ack", "hello", "hello-ack", "bye", "bye-ack", "?", "?"} {
		if is := Kind(k).String(); is != name {
			t.Errorf("kind %d is %q, want %q", k, is, name)
		}
	}
	for s, name := range []string{"idle", "handshaking", "open", "closing", "?"} {
		if is := State(s).String(); is != name {
			t.Errorf("state %d is %q, want %q", s, is, name)
		}
	}
}

func TestSACK_Len(t *testing.T) {
	for _, c := range []struct {
		sack SACK
		want int
	}{{SACK{}, 0}, {SACK{5}, 2}, {SACK{1, 0, 1 << 63, 3}, 4}} {
		if n := c.sack.Len(); n != c.want {
			t.Errorf("%x: %d, want %d", c.sack, n, c.want)
		}
	}
}
