package decode_test

import (
	"testing"

	"github.com/google/gopacket"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// The golden vectors of docs/wire-format.md.
const (
	goldenProbe = "14 01 00 00 0001 0002 00000001 0010 2065 a6709656 00000007 00 00 0000 0000 0000 0a0b0c0d"
	goldenReply = "15 01 00 00 0002 0001 00000001 0010 2065 9418e5b9 00000007 08 00 0000 2065 0000 01020304"
	goldenOther = "14 01 00 00 0001 0002 00000001 0010 0005 994d129b 00000008 07 00 0006 0000 0000 0a0b0c0d"
)

func TestProbes(t *testing.T) {
	for _, c := range []struct {
		bytes, text string
		head        decode.ProbeHead
	}{
		{goldenProbe, "1 -> 2 probe 7 cluster 0x1 16 bytes sent with VID 101 PCP 1", decode.ProbeHead{Number: 7, Incarnation: 0x0a0b0c0d}},
		{goldenReply, "2 -> 1 reply 7 received with VID 101 PCP 1 cluster 0x1 16 bytes sent with VID 101 PCP 1",
			decode.ProbeHead{Number: 7, ReceivedTag: transport.Tagged(transport.Tag{VID: 101, PCP: 1}), Incarnation: 0x01020304}},
		{goldenOther, "1 -> 2 probe 8 reply with VID 6 cluster 0x1 16 bytes sent with VID 5",
			decode.ProbeHead{Number: 8, HasReplyTag: true, ReplyTag: transport.Tagged(transport.Tag{VID: 6}), AnyNode: true, Incarnation: 0x0a0b0c0d}},
	} {
		var m decode.Message
		if err := m.DecodeFromBytes(decodetest.Unhex(t, c.bytes), gopacket.NilDecodeFeedback); err != nil || m.Fault != nil {
			t.Fatal(err, m.Fault)
		}
		if head, ok := m.Probe(); !ok || head != c.head {
			t.Errorf("%v: %+v, want %+v", &m, head, c.head)
		}
		if m.String() != c.text {
			t.Errorf("got %q, want %q", m.String(), c.text)
		}
	}
	m := sample
	if _, ok := m.Probe(); ok {
		t.Error("a multicast is no probe")
	}
}
