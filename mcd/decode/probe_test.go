package decode_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

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

// What is wrong with a probe or a contact though all that it says is well formed is told.
func TestProbes_Dropped(t *testing.T) {
	const group, station = "\x03\x52\x00\x01\x00\x05", "\x02\x00\x00\x00\x00\x01"
	contact := append(decodetest.Unhex(t, "26 80 00 00 0001 ffff 01020304 0008 0000"), make([]byte, 32+8)...)
	bytesOf := func(kind decode.Kind, from, to uint16, n int) []byte {
		m := decode.Message{Kind: kind, From: from, To: to}
		return frame(t, &m, string(make([]byte, n)))[18 : 18+20+n]
	}
	for _, c := range []struct {
		name, dst, src string
		message        []byte
		want           string
	}{
		{"a probe", station, station, bytesOf(decode.Probe, 1, 2, 16), ""},
		{"a short probe", station, station, bytesOf(decode.Probe, 1, 2, 15), "probe (it is shorter than 16 bytes)"},
		{"a short reply", station, station, bytesOf(decode.Reply, 1, 2, 15), "probe (it is shorter than 16 bytes)"},
		{"a probe to a group", group, station, bytesOf(decode.Probe, 1, 2, 16), "probe (to or from a group address)"},
		{"a probe from a group", station, group, bytesOf(decode.Probe, 1, 2, 16), "probe (to or from a group address)"},
		{"a probe to oneself", group, station, bytesOf(decode.Probe, 1, 1, 16), ""},
		{"a multicast", group, station, bytesOf(decode.Multicast, 1, 2, 5), ""},
		{"a contact", group, station, contact, "tag (a contact's payload has 64 bytes)"},
	} {
		p := gopacket.NewPacket(append([]byte(c.dst+c.src+"\x88\xb5"), c.message...), layers.LayerTypeEthernet, gopacket.Default)
		m, ok := p.Layer(decode.LayerType).(*decode.Message)
		if !ok {
			t.Fatalf("%s: no message in %v", c.name, p)
		}
		want := "a node would drop this frame: " + c.want
		if c.want == "" {
			want = "<nil>"
		}
		if got := fmt.Sprint(m.Fault); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}
