package diagnose

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// serialised is layers, one behind the other.
func serialised(t testing.TB, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, all...))
	return bytes.Clone(b.Bytes())
}

// hello is a message on Ethernet.
func hello(t testing.TB, etherType transport.EtherType, tag uint16) []byte {
	return serialised(t,
		&layers.Ethernet{SrcMAC: []byte{2, 5: 1}, DstMAC: []byte{2, 5: 2}, EthernetType: layers.EthernetTypeDot1Q},
		&layers.Dot1Q{VLANIdentifier: tag, Type: layers.EthernetType(etherType)},
		&decode.Message{Kind: decode.Unicast, To: 1, SrcPort: 3, DstPort: 4, Cluster: 1}, gopacket.Payload("hello"))
}

// dumped is what dump prints of a file.
func dumped(t *testing.T, file []byte, args ...string) (out, errs string, status int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	must(t, os.WriteFile(path, file, 0o600))
	return command(t, append([]string{"dump", path}, args...)...)
}

// A pcapng file may have interfaces of all kinds. Those that are Ethernet are read, and each frame
// has its interface's name if there are several.
func TestDump_Interfaces(t *testing.T) {
	eth0 := pcapgo.NgInterface{Name: "eth0", LinkType: layers.LinkTypeEthernet}
	eth1, lo := pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet}, pcapgo.NgInterface{Name: "tun0", LinkType: layers.LinkTypeRaw}
	for _, c := range []struct {
		name       string
		interfaces []pcapgo.NgInterface
		want       []string // in lines
		refused    bool
	}{
		{"one", []pcapgo.NgInterface{eth0}, []string{"    1     0.000000 02:00", "1 messages, 0 of them faulty; 0 other frames"}, false},
		{"two", []pcapgo.NgInterface{eth0, eth1}, []string{"    1     0.000000 eth0 02:00", "    2     0.000000 interface 1 02:00", "2 messages"}, false},
		{"another kind first", []pcapgo.NgInterface{lo, eth0}, []string{"    2     0.000000 eth0 02:00", "1 messages, 0 of them faulty; 1 other frames"}, false},
		{"another kind last", []pcapgo.NgInterface{eth0, lo}, []string{"    1     0.000000 eth0 02:00", "1 messages, 0 of them faulty; 1 other frames"}, false},
		{"another kind alone", []pcapgo.NgInterface{lo}, nil, true},
	} {
		var file bytes.Buffer
		w, err := pcapgo.NewNgWriterInterface(&file, c.interfaces[0], pcapgo.DefaultNgWriterOptions)
		must(t, err)
		for _, i := range c.interfaces[1:] {
			_, err := w.AddInterface(i)
			must(t, err)
		}
		for k := range c.interfaces {
			b := hello(t, transport.EtherTypeDefault, 5)
			must(t, w.WritePacket(gopacket.CaptureInfo{InterfaceIndex: k, CaptureLength: len(b), Length: len(b)}, b))
		}
		must(t, w.Flush())
		out, errs, status := dumped(t, file.Bytes())
		if refused := status == cli.ExitFailed && strings.Contains(errs, "captured on Raw, want Ethernet"); refused != c.refused {
			t.Errorf("%s: status %d: %s", c.name, status, errs)
		}
		if lines := strings.Split(out, "\n"); len(lines) < len(c.want) {
			t.Errorf("%s: printed %s", c.name, out)
		} else {
			for i, want := range c.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("%s: %q, want %q", c.name, lines[i], want)
				}
			}
		}
		if out, _, _ := dumped(t, file.Bytes(), "--all"); !c.refused && strings.Count(out, "\n") != 1+len(c.interfaces) {
			t.Errorf("%s: with --all %s", c.name, out)
		}
	}
}

// The snap length of a pcap file is a hint, which some programs give as 0 or as the most that there
// is. A frame that no capture has is refused, and not for an end that is missing.
func TestDump_SnapLengths(t *testing.T) {
	frame := hello(t, transport.EtherTypeDefault, 5)
	for _, snap := range []uint32{0, 10, 1500, 0x7fffffff, 0xffffffff} {
		var file bytes.Buffer
		w := pcapgo.NewWriter(&file)
		must(t, errors.Join(w.WriteFileHeader(1500, layers.LinkTypeEthernet),
			w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(frame), Length: len(frame)}, frame)))
		binary.LittleEndian.PutUint32(file.Bytes()[16:], snap)
		if out, errs, status := dumped(t, file.Bytes()); status != cli.ExitDone || !strings.Contains(out, "1 messages, 0 of them") {
			t.Errorf("snap length %d: status %d, %s%s", snap, status, out, errs)
		}
		binary.LittleEndian.PutUint32(file.Bytes()[24+8:], maxBlock+1)
		if _, errs, status := dumped(t, file.Bytes()); status != cli.ExitFailed || strings.Contains(errs, "cut off") {
			t.Errorf("snap length %d, and a frame that is too long: status %d, %s", snap, status, errs)
		}
	}
}

// captured is a pcap file with some frames.
func captured(t *testing.T, frames ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	must(t, w.WriteFileHeader(1<<16, layers.LinkTypeEthernet))
	for _, b := range frames {
		must(t, w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b))
	}
	return file.Bytes()
}

// Messages of another EtherType than the one that is asked for are frames of others.
func TestDump_EtherType(t *testing.T) {
	const other = 0x88b7
	short := hello(t, transport.EtherTypeDefault, 5)[:30]
	file := captured(t, hello(t, transport.EtherTypeDefault, 5), hello(t, other, 5), short)
	for flag, want := range map[string]string{
		"0x88b5": "2 messages, 1 of them faulty; 1 other frames\n", "0x88b7": "1 messages, 0 of them faulty; 2 other frames\n",
	} {
		if out, errs, _ := dumped(t, file, "--ethertype", flag); !strings.HasSuffix(out, want) {
			t.Errorf("--ethertype %s: %s%s, want %s", flag, out, errs, want)
		}
	}
}

// What tcpdump captures of a link over UDP is read, each frame with its own addresses and tag.
func TestDump_Datagrams(t *testing.T) {
	datagram := func(port layers.UDPPort) []byte {
		return serialised(t,
			&layers.Ethernet{SrcMAC: []byte{2, 5: 8}, DstMAC: []byte{2, 5: 9}, EthernetType: layers.EthernetTypeIPv4},
			&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}},
			&layers.UDP{SrcPort: port, DstPort: port}, gopacket.Payload(hello(t, transport.EtherTypeDefault, 5)[:18+20+5]),
			gopacket.Payload(hello(t, transport.EtherTypeDefault, 6)[:18+20+5]))
	}
	file := captured(t, datagram(27401), datagram(7401))
	for flag, frame := range map[string]string{"27401": "1", "7401": "2"} {
		out, errs, _ := dumped(t, file, "--udp-port", flag)
		const says = " 02:00:00:00:00:01 > 02:00:00:00:00:02 VID "
		if strings.Count(out, "\n    "+frame+" ")+strings.Count(out[:6], frame) != 2 || !strings.Contains(out, says+"5 PCP 0: 0:3 -> 1:4") ||
			!strings.Contains(out, says+"6 PCP 0: 0:3 -> 1:4") {
			t.Errorf("--udp-port %s: %s%s", flag, out, errs)
		}
	}
}

// The keys of what dump prints as JSON are those of docs/bench-json.md.
func TestDump_JSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	must(t, err)
	d := &dumpVerb{etherType: uint16(transport.EtherTypeDefault), json: true, all: true, payload: 4}
	var out bytes.Buffer
	d.out = bufio.NewWriter(&out)
	must(t, d.print(bytes.NewReader(captured(t, hello(t, transport.EtherTypeDefault, 5), hello(t, transport.EtherTypeDefault, 5)[:40]))))
	must(t, d.out.Flush())
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		must(t, json.Unmarshal([]byte(line), &r))
		if r["schema"] != float64(dumpSchema) {
			t.Errorf("schema %v", r["schema"])
		}
		wantDocumented(t, string(doc), r)
	}
}

// So are those of ping and matrix.
func TestPaths_JSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	must(t, err)
	for _, args := range [][]string{
		{"ping", "1", "--count", "1", "--json"},
		{"matrix", "--count", "1", "--rate", "1ms", "--json"},
		{"matrix", "--check", "--vids", "1,3", "--wait", "100ms", "--json"},
	} {
		out, errs, _ := command(t, args...)
		if out == "" {
			t.Fatal(args, errs)
		}
		for line := range strings.Lines(out) {
			var r map[string]any
			must(t, json.Unmarshal([]byte(line), &r))
			wantDocumented(t, string(doc), r)
		}
	}
}

// wantDocumented looks for the keys of an object, and of those in it.
func wantDocumented(t *testing.T, doc string, object map[string]any) {
	t.Helper()
	for key, value := range object {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("%s is not in docs/bench-json.md", key)
		}
		if inner, is := value.(map[string]any); is {
			wantDocumented(t, doc, inner)
		}
	}
}
