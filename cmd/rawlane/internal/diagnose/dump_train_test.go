package diagnose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// Each message of a train has a line, by the number of the packet that they came in; so has one that
// is cut off.
func TestDump_Trains(t *testing.T) {
	serialize := func(all ...gopacket.SerializableLayer) []byte {
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, all...); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	message := func(port uint8, text string) []byte {
		return serialize(&decode.Message{Kind: decode.Unicast, From: 1, SrcPort: port, To: 2, DstPort: 9, Cluster: 1},
			gopacket.Payload(text))
	}
	train := func(messages ...[]byte) []byte {
		return serialize(
			&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeDot1Q},
			&layers.Dot1Q{VLANIdentifier: 7, Type: layers.EthernetTypeIPv4},
			&layers.IPv4{Version: 4, IHL: 5, TTL: 1, Protocol: layers.IPProtocolUDP,
				SrcIP: []byte{239, 82, 76, 1}, DstIP: []byte{239, 82, 76, 2}},
			&layers.UDP{SrcPort: 1, DstPort: layers.UDPPort(transport.EtherTypeDefault)},
			gopacket.Payload(slices.Concat(messages...)))
	}
	spoilt := message(4, "two")
	spoilt[len(spoilt)-1]++
	file := filepath.Join(t.TempDir(), "trains.pcap")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{
		train(message(3, "one"), spoilt, message(5, "end")), train(message(6, "six"), message(7, "cut")[:9]),
	} {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(b), Length: len(b)}
		if err := w.WritePacket(info, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "dump", file)
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{
		`1     0.000000 02:00:00:00:00:01 > 02:00:00:00:00:02 VID 7 PCP 0: 1:3 -> 2:9 unicast cluster 0x1 3 bytes "one"`,
		`1:4 -> 2:9`, `1:5 -> 2:9 unicast cluster 0x1 3 bytes "end"`, `    2     0.000000 `, `a node would drop this frame`,
		"5 messages, 2 of them faulty; 0 other frames",
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("line %d: %q, want %q", i, lines[i], want[i])
		}
	}
	out, _, _ = command(t, "dump", file, "--json")
	var ports []uint8
	var faults int
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var r dumpRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Message != nil {
			ports = append(ports, r.Message.SrcPort)
		}
		if r.Fault != "" {
			faults++
		}
	}
	if !slices.Equal(ports, []uint8{3, 4, 5, 6}) || faults != 2 {
		t.Errorf("from ports %v, %d faults; want 3, 4, 5, 6 and 2:\n%s", ports, faults, out)
	}
}
