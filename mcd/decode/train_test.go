package decode_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// train returns a packet of messages that go together, as a link makes it: see docs/wire-format.md.
func train(t testing.TB, kind uint16, messages ...[]byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 1, Protocol: layers.IPProtocolUDP, Flags: layers.IPv4DontFragment,
		SrcIP: []byte{239, 82, 76, 1}, DstIP: []byte{239, 82, 76, 2}}
	udp := &layers.UDP{SrcPort: layers.UDPPort(kind), DstPort: layers.UDPPort(transport.EtherTypeDefault)}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4},
		ip, udp, gopacket.Payload(slices.Concat(messages...)))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// message returns a message's bytes.
func message(t testing.TB, port uint8, payload string) []byte {
	m := decode.Message{Kind: decode.Unicast, SrcPort: port, DstPort: 9, From: 1, To: 2, Cluster: 1}
	return slices.Clone(frame(t, &m, payload)[18 : 18+20+len(payload)])
}

// The messages of a train decode one by one; what links say to each other decodes as no message.
func TestTrainsDecode(t *testing.T) {
	a, b := message(t, 3, "one"), message(t, 4, "two")
	spoilt := slices.Clone(b)
	spoilt[20] ^= 1
	foreign, long := slices.Clone(b), slices.Clone(b)
	foreign[0] += 2 << 4
	long[12] = 1
	short, more, c := slices.Clone(b), slices.Clone(b), message(t, 5, "x")
	short[13], more[13] = 1, 4
	for _, c := range []struct {
		name   string
		packet []byte
		want   []uint8 // source ports of the messages
		failed bool
	}{
		{"one frame", train(t, 1, a), []uint8{3}, false},
		{"three frames", train(t, 1, a, b, a), []uint8{3, 4, 3}, false},
		{"the last is cut off", train(t, 1, a, b[:10]), []uint8{3}, true},
		{"one is spoilt", train(t, 1, a, spoilt, a), []uint8{3, 4, 3}, false},
		{"one is of another version", train(t, 1, a, foreign, a), []uint8{3, 0, 3}, false},
		{"one claims more bytes than there are", train(t, 1, a, long, a), []uint8{3, 4, 3}, false},
		{"one claims fewer bytes than it has", train(t, 1, a, short, a), []uint8{3, 4, 3}, false},
		{"the first claims one byte more", train(t, 1, more, a, a), []uint8{4, 3, 3}, false},
		{"the first claims one byte more, the last is shorter", train(t, 1, more, c), []uint8{4, 5}, false},
		{"an offer", train(t, 2, make([]byte, 32)), nil, false},
	} {
		p := gopacket.NewPacket(c.packet, layers.LayerTypeEthernet, gopacket.Default)
		var got []uint8
		for _, l := range p.Layers() {
			if m, ok := l.(*decode.Message); ok {
				got = append(got, m.SrcPort)
			}
		}
		if !slices.Equal(got, c.want) || (p.ErrorLayer() != nil) != c.failed {
			t.Errorf("%s: from ports %v, want %v; %v", c.name, got, c.want, p.ErrorLayer())
		}
	}
}

// A datagram of others, with a port whose number is that of our EtherType, is to gopacket what it is
// without this package.
func TestTrains_NotOurs(t *testing.T) {
	query := &layers.DNS{ID: 7, Questions: []layers.DNSQuestion{{Name: []byte("host"), Type: layers.DNSTypeA, Class: layers.DNSClassIN}}}
	b := gopacket.NewSerializeBuffer()
	if err := query.SerializeTo(b, gopacket.SerializeOptions{FixLengths: true}); err != nil {
		t.Fatal(err)
	}
	ours, dns, payload := message(t, 3, "one"), b.Bytes(), gopacket.LayerTypePayload
	const port = layers.UDPPort(transport.EtherTypeDefault)
	others, from, to := net.IP{10, 0, 0, 1}, net.IP{239, 82, 76, 1}, net.IP{239, 82, 76, 2}
	for _, c := range []struct {
		name             string
		src, dst         net.IP
		srcPort, dstPort layers.UDPPort
		data             []byte
		want             gopacket.LayerType // the last one
	}{
		{"a resolver's answer", others, others, 53, port, dns, layers.LayerTypeDNS},
		{"a question from there", others, others, port, 53, dns, layers.LayerTypeDNS},
		{"some datagram", others, others, 4000, port, ours, payload},
		{"one from there", others, others, port, 4000, ours, payload},
		{"one from there to there", others, others, port, port, ours, payload},
		{"one from port 1", others, others, 1, port, ours, payload},
		{"from a train's address alone", from, others, 1, port, ours, payload},
		{"to a train's address alone", others, to, 1, port, ours, payload},
		{"to another port", from, to, 1, 4000, ours, payload},
		{"from another port", from, to, 4, port, ours, payload},
		{"an answer to an offer", from, to, 3, port, make([]byte, 32), payload},
	} {
		b := gopacket.NewSerializeBuffer()
		err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
			&layers.Ethernet{SrcMAC: []byte{2, 5: 1}, DstMAC: []byte{2, 5: 2}, EthernetType: layers.EthernetTypeIPv4},
			&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: c.src, DstIP: c.dst},
			&layers.UDP{SrcPort: c.srcPort, DstPort: c.dstPort}, gopacket.Payload(c.data))
		if err != nil {
			t.Fatal(err)
		}
		for _, lazy := range []bool{false, true} {
			p := gopacket.NewPacket(b.Bytes(), layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: lazy})
			all := p.Layers()
			if got := all[len(all)-1].LayerType(); got != c.want || p.ErrorLayer() != nil {
				t.Errorf("%s: ends with %v, %v; want %v", c.name, got, p.ErrorLayer(), c.want)
			}
		}
	}
}

// The frames in a datagram of a link over UDP decode one by one, with their addresses and tags.
func TestDatagramsDecode(t *testing.T) {
	const port = 27401
	decode.RegisterDatagrams(port)
	one, end := frame(t, &sample, "three")[:18+20+5], frame(t, &sample, "end")[:18+20+3]
	spoilt, own := slices.Clone(one), slices.Clone(one)
	spoilt[18+13]++
	own[16], own[17] = 0x88, 0xb6
	for _, c := range []struct {
		name  string
		bytes []byte
		want  []int // lengths of the payloads
	}{
		{"one", datagram(t, port, 4000, one), []int{5}},
		{"a reply", datagram(t, 4000, port, one), []int{5}},
		{"several", datagram(t, port, port, one, one, end), []int{5, 5, 3}},
		{"the first is spoilt", datagram(t, port, port, spoilt, one, end), []int{6, 5, 3}},
		{"the link's own", datagram(t, port, port, own), nil},
		{"one and the link's own", datagram(t, port, port, one, own), []int{5}},
		{"nothing", datagram(t, port, port), nil},
		{"less than a header", datagram(t, port, port, one[:10]), nil},
	} {
		p := gopacket.NewPacket(c.bytes, layers.LayerTypeEthernet, gopacket.Default)
		var got []int
		var eths, tags int
		for _, l := range p.Layers() {
			switch l := l.(type) {
			case *layers.Ethernet:
				eths++
			case *layers.Dot1Q:
				tags++
			case *decode.Message:
				got = append(got, l.Length)
			}
		}
		if !slices.Equal(got, c.want) || len(got) > 0 && (eths != 1+len(got) || tags != len(got)) {
			t.Errorf("%s: payloads of %v bytes, %d headers, %d tags, want %v", c.name, got, eths, tags, c.want)
		}
	}
}

// So does Wireshark.
func TestWiresharkDissector_Trains(t *testing.T) {
	a, b := message(t, 3, "one"), message(t, 4, "two")
	more := slices.Clone(b)
	more[13] = 4
	unpadded := frame(t, &sample, "three")[:18+20+5]
	packets := [][]byte{
		train(t, 1, a), train(t, 1, a, b, a), train(t, 2, make([]byte, 32)), train(t, 3, make([]byte, 32)),
		train(t, 1, more, a, a), datagram(t, 1, 34997, a), datagram(t, 4000, 34997, a), datagram(t, 34997, 4000, a),
		datagram(t, 27401, 27401, unpadded, unpadded, frame(t, &sample, "end")[:18+20+3]),
	}
	want := []string{
		"3|good|1:3 -> 2:9 3 bytes", "3,4,3|good,good,good|3 frames as one", "||offer to send trains", "||answer: trains arrive",
		"4,3,3|good,good|3 frames as one", "||1 → 34997 Len=23", "||4000 → 34997 Len=23", "||34997 → 4000 Len=23",
		"3,3,3|good,good,good|3 frames as one",
	}
	if got := tsharkFields(t, write(t, packets), "rawlane.src_port", "rawlane.checksum.status", "_ws.col.Info"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the capture has in part is not called malformed.
func TestWiresharkDissector_Parts(t *testing.T) {
	long := strings.Repeat("x", 200)
	whole := frame(t, &sample, long)
	packets := [][]byte{
		whole, frame(t, &sample, "short"), train(t, 1, message(t, 3, long), message(t, 3, long)), datagram(t, 27401, 27401, whole),
	}
	for most, want := range map[int][]string{
		1000: {"good|", "good|", "good,good|", "good|"},
		100:  {"|Captured in part", "good|", "|Captured in part", "|Captured in part"},
		25:   {"|Captured in part", "|Captured in part", "|", "|"},
	} {
		if got := tsharkFields(t, writeParts(t, packets, most), "rawlane.checksum.status", "_ws.expert.message"); !slices.Equal(got, want) {
			t.Errorf("%d bytes: got\n%s\nwant\n%s", most, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// The dissector tells of probes and contacts what decode does.
func TestWiresharkDissector_ProbesDropped(t *testing.T) {
	toGroup := func(b []byte) []byte {
		b[0] |= 1
		return b
	}
	probe := func(from uint16, n int) []byte {
		return frame(t, &decode.Message{Kind: decode.Probe, From: from, To: 2}, string(make([]byte, n)))
	}
	contact := append(decodetest.Unhex(t, "26 80 00 00 0001 ffff 01020304 0008 0000"), make([]byte, 32+8)...)
	got := tsharkFields(t, write(t, [][]byte{
		probe(1, 16), probe(1, 15), toGroup(probe(1, 16)), toGroup(probe(2, 16)), append(probe(1, 0)[:18], contact...),
	}), "_ws.expert.message")
	const bad = "A probe that is too short, or has a group address"
	if want := []string{"", bad, bad, "", "A contact of another length"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// datagram returns frames in a UDP datagram of hosts.
func datagram(t testing.TB, src, dst layers.UDPPort, frames ...[]byte) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{SrcMAC: []byte{2, 5: 1}, DstMAC: []byte{2, 5: 2}, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}},
		&layers.UDP{SrcPort: src, DstPort: dst}, gopacket.Payload(slices.Concat(frames...)))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
