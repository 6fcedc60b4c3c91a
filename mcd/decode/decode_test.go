package decode_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// frame is a tagged frame with a message in it, as bytes.
func frame(t testing.TB, m *decode.Message, payload string) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{},
		&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeDot1Q},
		&layers.Dot1Q{VLANIdentifier: 101, Priority: 1, Type: layers.EthernetType(transport.EtherTypeDefault)},
		m, gopacket.Payload(payload))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var sample = decode.Message{Kind: decode.Multicast, OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 1}),
	SrcPort: 3, DstPort: 4, From: 1, To: 5, Cluster: 0x01020304}

func TestMessageUnderATag(t *testing.T) {
	m := sample
	p := gopacket.NewPacket(frame(t, &m, "hello"), layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	if v, ok := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); !ok || v.VLANIdentifier != 101 {
		t.Errorf("tag: %v", v)
	}
	got, ok := p.Layer(decode.LayerType).(*decode.Message)
	if !ok {
		t.Fatalf("no message in %v", p)
	}
	want := sample
	want.BaseLayer, want.Version, want.Length, want.Checksum = got.BaseLayer, 1, 5, got.Checksum
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v\nwant %+v", *got, want)
	}
	if app := p.ApplicationLayer(); app == nil || string(app.Payload()) != "hello" {
		t.Errorf("payload: %v", app)
	}
	if got.String() != "1:3 -> group 5:4 multicast cluster 0x1020304 5 bytes sent with VID 101 PCP 1" {
		t.Errorf("String: %v", got)
	}
}

// The padding of a short frame is not the message's.
func TestPaddingIsNotPayload(t *testing.T) {
	m := sample
	padded := append(frame(t, &m, "hello"), make([]byte, 17)...)
	p := gopacket.NewPacket(padded, layers.LayerTypeEthernet, gopacket.Default)
	if got := p.Layer(decode.LayerType); got == nil || string(got.LayerPayload()) != "hello" {
		t.Errorf("payload: %v", got)
	}
}

// What the endpoint sends is what the layer reads.
func TestAgreesWithTheEndpoint(t *testing.T) {
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mcd.Open(mcd.Config{Cluster: 9, Node: 3, Nodes: []mcd.Node{{ID: 4, MACs: []transport.MAC{links[1].MAC()}}}}, links[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	port, err := e.OpenPort(7, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := port.Send(context.Background(), mcd.Addr{Node: 4, Port: 8}, []byte("payload")); err != nil {
		t.Fatal(err)
	}
	frames := make([]transport.Frame, 1)
	if n, err := links[1].Poll(frames); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	var got decode.Message
	if err := got.DecodeFromBytes(frames[0].Payload, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if got.String() != "3:7 -> 4:8 unicast cluster 0x9 7 bytes" || string(got.Payload) != "payload" {
		t.Errorf("%v, payload %q", &got, got.Payload)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	m := sample
	good := frame(t, &m, "hello")[18:]
	for _, c := range []struct {
		name  string
		spoil func(b []byte) []byte
		want  string
	}{
		{"whole", func(b []byte) []byte { return b }, ""},
		{"payload changed", func(b []byte) []byte { b[20] ^= 1; return b }, "checksum"},
		{"cut off", func(b []byte) []byte { return b[:22] }, "length"},
		{"another version", func(b []byte) []byte { b[0] = 0x31; return b }, "version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got decode.Message
			if err := got.DecodeFromBytes(c.spoil(append([]byte(nil), good...)), gopacket.NilDecodeFeedback); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && got.Fault == nil:
			case c.want != "" && errors.Is(got.Fault, decode.ErrFault) && got.Fault.Error() == decode.ErrFault.Error()+": "+c.want:
			default:
				t.Errorf("fault %v, want %q", got.Fault, c.want)
			}
		})
	}
	var got decode.Message
	if err := got.DecodeFromBytes(good[:19], gopacket.NilDecodeFeedback); !errors.Is(err, decode.ErrFault) {
		t.Errorf("19 bytes: %v", err)
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	m := sample
	data := frame(t, &m, "hello")
	var eth layers.Ethernet
	var tag layers.Dot1Q
	var message decode.Message
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &tag, &message)
	parser.IgnoreUnsupported = true
	found := make([]gopacket.LayerType, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		if err := parser.DecodeLayers(data, &found); err != nil || len(found) != 3 {
			t.Fatal(found, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzMessage(f *testing.F) {
	m := sample
	f.Add(frame(f, &m, "hello")[18:])
	f.Add([]byte{})
	f.Add(append([]byte{0x20}, make([]byte, 60)...)) // of version 2
	f.Fuzz(func(t *testing.T, b []byte) {
		var m decode.Message
		header := 20
		if len(b) > 0 && b[0]>>4 == 2 {
			header = 48
		}
		if err := m.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
			if len(b) >= header {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			return
		}
		if m.String() == "" || len(m.Payload) > len(b)-header {
			t.Fatalf("%v: payload of %d bytes from %d", &m, len(m.Payload), len(b))
		}
		if m.Fault != nil || m.Auth != nil { // what has a tag is not made without the key
			return
		}
		again := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(again, gopacket.SerializeOptions{}, &m, gopacket.Payload(m.Payload)); err != nil {
			t.Fatal(err)
		}
		var back decode.Message
		if err := back.DecodeFromBytes(again.Bytes(), gopacket.NilDecodeFeedback); err != nil || back.String() != m.String() {
			t.Fatalf("%v became %v (%v)", &m, &back, err)
		}
	})
}

func Example() {
	message := &decode.Message{Kind: decode.Unicast, SrcPort: 7, DstPort: 9, From: 1, To: 2, Cluster: 42}
	b := gopacket.NewSerializeBuffer()
	_ = gopacket.SerializeLayers(b, gopacket.SerializeOptions{},
		&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetType(transport.EtherTypeDefault)},
		message, gopacket.Payload("hello"))

	packet := gopacket.NewPacket(b.Bytes(), layers.LayerTypeEthernet, gopacket.Default)
	if m, ok := packet.Layer(decode.LayerType).(*decode.Message); ok {
		fmt.Printf("%v: %q\n", m, m.Payload)
	}
	// Output: 1:7 -> 2:9 unicast cluster 0x2a 5 bytes: "hello"
}
