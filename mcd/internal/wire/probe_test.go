package wire

import (
	"bytes"
	"os"
	"testing"
)

// The golden vectors of probes in docs/wire-format.md, header and head.
var goldenProbes = []struct {
	name   string
	header Header
	head   ProbeHead
	bytes  string
}{
	{"probe 7 from node 1 to node 2 by VID 101, PCP 1, cluster 1",
		Header{Kind: Probe, Tagged: true, TCI: 0x2065, From: 1, To: 2, Cluster: 1},
		ProbeHead{Number: 7, Incarnation: 0x0a0b0c0d},
		"14 01 00 00 0001 0002 00000001 0010 2065 a6709656 00000007 00 00 0000 0000 0000 0a0b0c0d"},
	{"its reply; the probe was received as it was sent",
		Header{Kind: Reply, Tagged: true, TCI: 0x2065, From: 2, To: 1, Cluster: 1},
		ProbeHead{Number: 7, Flags: ProbeReceivedTagged, ReceivedTCI: 0x2065, Incarnation: 0x01020304},
		"15 01 00 00 0002 0001 00000001 0010 2065 9418e5b9 00000007 08 00 0000 2065 0000 01020304"},
	{"probe 9, untagged, from any node",
		Header{Kind: Probe, From: 1, To: 2, Cluster: 1},
		ProbeHead{Number: 9, Flags: ProbeAnyNode, Incarnation: 0x0a0b0c0d},
		"14 00 00 00 0001 0002 00000001 0010 0000 946ff5a3 00000009 04 00 0000 0000 0000 0a0b0c0d"},
	{"probe 8 by VID 5, reply by VID 6, from any node",
		Header{Kind: Probe, Tagged: true, TCI: 5, From: 1, To: 2, Cluster: 1},
		ProbeHead{Number: 8, Flags: ProbeReplyTag | ProbeReplyTagged | ProbeAnyNode, ReplyTCI: 6, Incarnation: 0x0a0b0c0d},
		"14 01 00 00 0001 0002 00000001 0010 0005 994d129b 00000008 07 00 0006 0000 0000 0a0b0c0d"},
}

func TestGoldenProbes(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goldenProbes {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, g.bytes)
			b := make([]byte, HeaderLen+ProbeHeadLen)
			g.head.Put(b[HeaderLen:])
			Seal(b, &g.header)
			if !bytes.Equal(b, want) {
				t.Errorf("Put:\n got %x\nwant %x", b, want)
			}
			var h Header
			var head ProbeHead
			if f := Parse(want, &h); f != OK || !head.Parse(h.Payload) || head != g.head || h.Kind != g.header.Kind {
				t.Errorf("Parse: %v, %+v, want %+v", f, head, g.head)
			}
			if !bytes.Contains(doc, []byte("`"+g.bytes+"`")) {
				t.Errorf("%s is not in docs/wire-format.md", g.bytes)
			}
		})
	}
}

func TestProbeHeadsAreWhole(t *testing.T) {
	var head ProbeHead
	if head.Parse(make([]byte, ProbeHeadLen-1)) {
		t.Error("a byte too few was taken for a head")
	}
}
