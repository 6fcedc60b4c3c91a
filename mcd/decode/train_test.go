package decode_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

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
		{"one is of another version", train(t, 1, a, foreign, a), []uint8{3, 0}, false},
		{"one claims more bytes than there are", train(t, 1, a, long, a), []uint8{3, 4}, false},
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

// So does Wireshark.
func TestWiresharkDissector_Trains(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	a, b := message(t, 3, "one"), message(t, 4, "two")
	packets := [][]byte{train(t, 1, a), train(t, 1, a, b, a), train(t, 2, make([]byte, 32)), train(t, 3, make([]byte, 32))}
	want := []string{
		"3|good|1:3 -> 2:9 3 bytes", "3,4,3|good,good,good|3 frames as one", "||offer to send trains", "||answer: trains arrive",
	}
	out, err := exec.Command(tshark, "-r", write(t, packets), "-X", dissector(t),
		"-T", "fields", "-E", "separator=|", "-e", "rawlane.src_port", "-e", "rawlane.checksum.status", "-e", "_ws.col.Info").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Split(strings.TrimRight(string(out), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
