package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/crc32c"
	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// The golden vectors of docs/wire-format.md, byte by byte.
var golden = []struct {
	name    string
	header  Header
	payload string
	bytes   string
}{
	{"unicast, port 7 to port 9, node 1 to node 2, untagged",
		Header{Kind: Unicast, DstPort: 9, SrcPort: 7, From: 1, To: 2, Cluster: 0x01020304}, "hello",
		"11 00 09 07 0001 0002 01020304 0005 0000 7d5655e6 68656c6c6f"},
	{"multicast to group 5 under VID 101, PCP 1",
		Header{Kind: Multicast, Tagged: true, TCI: 0x2065, DstPort: 3, SrcPort: 3, From: 4, To: 5, Cluster: 1}, "",
		"12 01 03 03 0004 0005 00000001 0000 2065 1010b871"},
	{"broadcast under a priority tag: VID 0 is not untagged",
		Header{Kind: Broadcast, Tagged: true, TCI: 0, DstPort: 255, SrcPort: 255, From: 0, To: AllNodes, Cluster: 1}, "\x00",
		"13 01 ff ff 0000 ffff 00000001 0001 0000 f9fc1266 00"},
	{"the unicast once more, whose checksum covers the header alone",
		Header{Kind: Unicast, HeaderOnly: true, DstPort: 9, SrcPort: 7, From: 1, To: 2, Cluster: 0x01020304}, "hello",
		"11 02 09 07 0001 0002 01020304 0005 0000 0820b41f 68656c6c6f"},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(s), []byte(" "), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, g.bytes)
			b := make([]byte, HeaderLen+len(g.payload))
			n := Put(b, &g.header, []byte(g.payload))
			if !bytes.Equal(b[:n], want) {
				t.Errorf("Put:\n got %x\nwant %x", b[:n], want)
			}
			var h Header
			if f := Parse(want, &h); f != OK {
				t.Fatalf("Parse: %v", f)
			}
			if string(h.Payload) != g.payload || h.Kind != g.header.Kind || h.Tagged != g.header.Tagged ||
				h.HeaderOnly != g.header.HeaderOnly || h.TCI != g.header.TCI || h.DstPort != g.header.DstPort || h.SrcPort != g.header.SrcPort ||
				h.From != g.header.From || h.To != g.header.To || h.Cluster != g.header.Cluster {
				t.Errorf("Parse: %+v, want %+v", h, g.header)
			}
		})
	}
}

// The checksum is the one that RFC 3720 calls CRC-32C, by the vector of its appendix B.4.
func TestChecksumIsCRC32C(t *testing.T) {
	if got := crc32c.Update(0, make([]byte, 32)); got != 0x8a9136aa {
		t.Errorf("CRC-32C of 32 zeros: %#08x, want 0x8a9136aa", got)
	}
}

func TestParseFaults(t *testing.T) {
	good := make([]byte, HeaderLen+4)
	Put(good, &Header{Kind: Unicast, From: 1, To: 2}, []byte("abcd"))
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	reseal := func(b []byte) []byte {
		c := new(Header).sum(b)
		b[16], b[17], b[18], b[19] = byte(c>>24), byte(c>>16), byte(c>>8), byte(c)
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want Fault
	}{
		{"whole", good, OK},
		{"padded to 46 bytes, as a NIC does", append(bytes.Clone(good), make([]byte, 46-len(good))...), OK},
		{"no bytes", nil, TooShort},
		{"a header less one byte", good[:HeaderLen-1], TooShort},
		{"zeros", make([]byte, 46), BadVersion},
		{"version 2", change(0, 0x21), BadVersion},
		{"length says one byte more than came", good[:len(good)-1], BadLength},
		{"one bit of the payload", change(HeaderLen, 'a'^1), BadChecksum},
		{"one bit of the destination port", change(2, 1), BadChecksum},
		{"one bit of the checksum", change(19, good[19]^1), BadChecksum},
		{"kind 0", reseal(change(0, 0x10)), BadKind},
		{"kind 6", reseal(change(0, 0x16)), BadKind},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h Header
			if got := Parse(c.b, &h); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Every single-bit error in header or payload is noticed; where the checksum covers the header alone, in the
// header.
func TestParseNoticesEveryBit(t *testing.T) {
	for _, headerOnly := range []bool{false, true} {
		good := make([]byte, HeaderLen+16)
		h := Header{Kind: Unicast, HeaderOnly: headerOnly, From: 1, To: 2, Cluster: 7}
		Put(good, &h, bytes.Repeat([]byte{0xa5}, 16))
		for bit := range 8 * len(good) {
			b := bytes.Clone(good)
			b[bit/8] ^= 1 << (bit % 8)
			covered := !headerOnly || bit/8 < HeaderLen
			if noticed := Parse(b, &h) != OK; noticed != covered {
				t.Errorf("header only %v: bit %d of byte %d changed: noticed %v, want %v",
					headerOnly, bit%8, bit/8, noticed, covered)
			}
		}
	}
}

func TestRoundTripAllocatesNothing(t *testing.T) {
	b, payload := make([]byte, 1500), make([]byte, 1000)
	var h Header
	if n := testing.AllocsPerRun(100, func() {
		n := Put(b, &Header{Kind: Unicast, From: 1, To: 2}, payload)
		if Parse(b[:n], &h) != OK {
			t.Fatal("not OK")
		}
	}); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

// FuzzParse: bytes of any kind are parsed or refused by name, and what is parsed is written back
// the same.
func FuzzParse(f *testing.F) {
	for _, g := range golden {
		b := make([]byte, HeaderLen+len(g.payload))
		Put(b, &g.header, []byte(g.payload))
		for _, v := range fuzzseed.Variants(b) {
			f.Add(v)
		}
		other := g.header // whole, and of a kind that there is not
		other.Kind = Reply + 1
		b = make([]byte, HeaderLen+len(g.payload))
		Put(b, &other, []byte(g.payload))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		fault := Parse(b, &h)
		if fault.String() == "unknown" {
			t.Fatalf("fault %d has no name", fault)
		}
		if fault != OK {
			return
		}
		out := make([]byte, HeaderLen+len(h.Payload))
		Put(out, &h, h.Payload)
		var again Header
		if f := Parse(out, &again); f != OK || !bytes.Equal(again.Payload, h.Payload) ||
			again.From != h.From || again.To != h.To || again.TCI != h.TCI && h.Tagged || again.Cluster != h.Cluster {
			t.Errorf("%+v was written back as %+v (%v)", h, again, f)
		}
	})
}

func BenchmarkPutParse(b *testing.B) {
	for _, size := range []int{4, 64, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			buf, payload := make([]byte, 1500), make([]byte, size)
			for i := range payload {
				payload[i] = byte(rand.IntN(256))
			}
			var h Header
			for b.Loop() {
				n := Put(buf, &Header{Kind: Unicast, From: 1, To: 2, Cluster: 1}, payload)
				Parse(buf[:n], &h)
			}
		})
	}
}

// docs/wire-format.md shows these very vectors.
func TestGoldenVectorsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range golden {
		if !bytes.Contains(doc, []byte("`"+g.bytes+"`")) {
			t.Errorf("%s: %s is not in docs/wire-format.md", g.name, g.bytes)
		}
	}
}

// A header that is parsed into again has nothing of the frame before.
func TestParse_IntoAHeaderThatWasUsed(t *testing.T) {
	var h Header
	for _, tagged := range []bool{true, false} {
		b := make([]byte, HeaderLen)
		Put(b, &Header{Kind: Unicast, Tagged: tagged, TCI: 5}, nil)
		if fault := Parse(b, &h); fault != OK || h.Tagged != tagged {
			t.Errorf("%v, tagged %t, want %t", fault, h.Tagged, tagged)
		}
	}
}
