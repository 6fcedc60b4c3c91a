package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/mdlayher/ethernet"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/transport"
)

func TestTagTCI(t *testing.T) {
	for _, c := range []struct {
		name string
		tag  transport.Tag
		tci  uint16
	}{
		{"PCP 1, VID 101", transport.Tag{VID: 101, PCP: 1}, 0x2065},
		{"priority only, VID 0 is not untagged", transport.Tag{PCP: 7}, 0xe000},
		{"zero", transport.Tag{}, 0},
		{"drop eligible", transport.Tag{VID: 1, DEI: true}, 0x1001},
		{"highest VID", transport.Tag{VID: 4094, PCP: 7, DEI: true}, 0xfffe},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.tag.TCI(); got != c.tci {
				t.Errorf("TCI %#04x, want %#04x", got, c.tci)
			}
			if got := transport.TagFromTCI(c.tci); got != c.tag {
				t.Errorf("TagFromTCI %v, want %v", got, c.tag)
			}
			if err := c.tag.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every TCI survives the way through Tag.
func TestTagRoundTrip(t *testing.T) {
	for tci := range 1 << 16 {
		if got := transport.TagFromTCI(uint16(tci)).TCI(); got != uint16(tci) {
			t.Fatalf("%#04x became %#04x", tci, got)
		}
	}
}

func TestTagValidate(t *testing.T) {
	for _, tag := range []transport.Tag{{VID: 4095}, {VID: 5000}, {VID: 1, PCP: 8}} {
		if err := tag.Validate(); !errors.Is(err, transport.ErrBadTag) {
			t.Errorf("%v: %v, want ErrBadTag", tag, err)
		}
	}
}

func TestParseMAC(t *testing.T) {
	for _, c := range []struct {
		in   string
		want transport.MAC
		ok   bool
	}{
		{"02:00:00:00:00:01", transport.MAC{2, 0, 0, 0, 0, 1}, true},
		{"02-00-00-00-00-0A", transport.MAC{2, 0, 0, 0, 0, 10}, true},
		{"0200.0000.00ff", transport.MAC{2, 0, 0, 0, 0, 255}, true},
		{"02:00:00:00:00", transport.MAC{}, false},
		{"02:00:00:00:00:00:00:01", transport.MAC{}, false}, // EUI-64
		{"eth0", transport.MAC{}, false},
		{"", transport.MAC{}, false},
	} {
		got, err := transport.ParseMAC(c.in)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("ParseMAC(%q) = %v, %v", c.in, got, err)
		}
	}
}

func TestMACInJSON(t *testing.T) {
	in := map[transport.MAC]transport.MAC{{2, 0, 0, 0, 0, 1}: transport.Broadcast}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"02:00:00:00:00:01":"ff:ff:ff:ff:ff:ff"}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	var out map[transport.MAC]transport.MAC
	if err := json.Unmarshal(b, &out); err != nil || out[transport.MAC{2, 0, 0, 0, 0, 1}] != transport.Broadcast {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestMACKinds(t *testing.T) {
	group := transport.MAC{0x03, 0x52, 0, 0, 0, 1}
	if !group.IsMulticast() || !group.IsLocal() || group.IsZero() {
		t.Errorf("%v: want a locally administered group address", group)
	}
	vendor := transport.MAC{0x00, 0x1b, 0x21, 0, 0, 1}
	if vendor.IsMulticast() || vendor.IsLocal() || !vendor.IsMulticast() && vendor.Compare(group) != -1 {
		t.Errorf("%v: want a vendor's address, before %v", vendor, group)
	}
}

// gopacket and ParseFrame read what AppendTo writes, and mdlayher/ethernet writes the same.
func TestFrameAgreesWithOtherCodecs(t *testing.T) {
	for _, f := range []transport.Frame{
		{Dst: transport.Broadcast, Src: transport.MAC{2, 0, 0, 0, 0, 1}, EtherType: 0x88b5, Payload: []byte("payload")},
		{Dst: transport.MAC{2, 0, 0, 0, 0, 2}, Src: transport.MAC{2, 0, 0, 0, 0, 1}, EtherType: 0x88b5,
			OptionalTag: transport.Tagged(transport.Tag{VID: 4094, PCP: 5, DEI: true}), Payload: []byte("payload")},
		{Src: transport.MAC{2}, EtherType: 0x88b5, OptionalTag: transport.Tagged(transport.Tag{}), Payload: []byte{}},
	} {
		b := f.AppendTo(nil)
		if len(b) != f.WireLen() {
			t.Errorf("%d bytes, WireLen %d", len(b), f.WireLen())
		}
		got, err := transport.ParseFrame(b)
		if err != nil || got.Dst != f.Dst || got.Src != f.Src || got.EtherType != f.EtherType ||
			got.Tagged != f.Tagged || got.Tag != f.Tag || !bytes.Equal(got.Payload, f.Payload) {
			t.Errorf("ParseFrame: %+v, %v; want %+v", got, err, f)
		}
		other := ethernet.Frame{Destination: f.Dst[:], Source: f.Src[:], EtherType: ethernet.EtherType(f.EtherType), Payload: f.Payload}
		if f.Tagged {
			other.VLAN = &ethernet.VLAN{ID: uint16(f.Tag.VID), Priority: ethernet.Priority(f.Tag.PCP), DropEligible: f.Tag.DEI}
		}
		padded, err := other.MarshalBinary()
		if err != nil || !bytes.Equal(bytes.TrimRight(padded, "\x00"), bytes.TrimRight(b, "\x00")) {
			t.Errorf("ethernet writes %x, %v; want %x", padded, err, b)
		}
		p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
		eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		if eth == nil || !bytes.Equal(eth.DstMAC, f.Dst[:]) || !bytes.Equal(eth.SrcMAC, f.Src[:]) {
			t.Errorf("gopacket reads %v", p)
		}
		q, tagged := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q)
		if tagged != f.Tagged || tagged && (q.VLANIdentifier != uint16(f.Tag.VID) || q.Priority != uint8(f.Tag.PCP) ||
			q.DropEligible != f.Tag.DEI || q.Type != layers.EthernetType(f.EtherType)) {
			t.Errorf("gopacket reads the tag as %+v, want %+v", q, f.Tag)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, v := range fuzzseed.Variants(bytes.Repeat([]byte{0x81, 0x00}, 9)) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := transport.ParseFrame(b)
		if err != nil {
			if !errors.Is(err, transport.ErrShortFrame) || len(b) >= transport.MaxHeaderLen {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			return
		}
		if again := frame.AppendTo(nil); !bytes.Equal(again, b) {
			t.Errorf("%x was written back as %x", b, again)
		}
	})
}

// FuzzParseMAC: an address is what package net takes for one of six bytes, and its text is read as
// the same.
func FuzzParseMAC(f *testing.F) {
	for _, s := range []string{
		"02:00:00:00:00:01", "02-00-00-00-00-01", "0200.0000.0001", "FF:ff:FF:ff:FF:ff", "02:00:00:00:00", "",
		"02:00:00:00:00:00:00:01", "2:0:0:0:0:1", "02:00:00:00:00:0g", "020000000001",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := transport.ParseMAC(s)
		hw, netErr := net.ParseMAC(s)
		if (err == nil) != (netErr == nil && len(hw) == 6) {
			t.Fatalf("%q: %v, %v", s, m, err)
		}
		if err != nil {
			if m != (transport.MAC{}) || !strings.HasPrefix(err.Error(), "MAC ") {
				t.Fatalf("%q: %v, %v", s, m, err)
			}
			return
		}
		if again, err := transport.ParseMAC(m.String()); err != nil || again != m || !bytes.Equal(m.HardwareAddr(), hw) {
			t.Errorf("%q is %v, and its text %v, %v", s, m, again, err)
		}
	})
}

func TestSentinelsAreTheStandardLibrarysToo(t *testing.T) {
	for _, c := range []struct{ err, is error }{
		{transport.ErrClosed, net.ErrClosed},
		{transport.ErrNotSupported, errors.ErrUnsupported},
		{transport.ErrPermission, fs.ErrPermission},
		{&transport.SizeError{Size: 1501, Max: 1500}, transport.ErrTooLarge},
	} {
		if err := fmt.Errorf("ring eth0: %w", c.err); !errors.Is(err, c.is) {
			t.Errorf("%v is not %v", err, c.is)
		}
	}
}

// stub is a link with nothing but a name and groups; wrapped hides them behind a wrapper.
type stub struct {
	transport.Link
	joined []transport.MAC
}

func (*stub) Name() string                 { return "eth7" }
func (s *stub) Join(g transport.MAC) error { s.joined = append(s.joined, g); return nil }
func (s *stub) Leave(transport.MAC) error  { s.joined = s.joined[:len(s.joined)-1]; return nil }

type wrapped struct{ transport.Link }

func (w wrapped) Unwrap() transport.Link { return w.Link }

func TestAbilitiesAreFoundThroughWrappers(t *testing.T) {
	s := &stub{}
	l := wrapped{wrapped{s}}
	if got := transport.Name(l); got != "eth7" {
		t.Errorf("Name %q", got)
	}
	if err := transport.Join(l, transport.Broadcast); err != nil || len(s.joined) != 1 {
		t.Errorf("Join: %v, joined %v", err, s.joined)
	}
	if err := transport.Leave(l, transport.Broadcast); err != nil || len(s.joined) != 0 {
		t.Errorf("Leave: %v, joined %v", err, s.joined)
	}
	if _, ok := transport.As[transport.WakeupMasker](l); ok {
		t.Error("found an ability that no link has")
	}
	if _, ok := transport.As[interface{ Wait(context.Context) error }](l); !ok {
		t.Error("did not find the outermost link's own method")
	}
}

func ExampleParseFrame() {
	f := transport.Frame{
		Dst:         transport.Broadcast,
		Src:         transport.MAC{0x02, 0, 0, 0, 0, 1},
		EtherType:   transport.EtherTypeDefault,
		OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 1}),
		Payload:     []byte("hello"),
	}
	b := f.AppendTo(nil)
	g, err := transport.ParseFrame(b)
	fmt.Println(len(b), g.Src, g.Tag, string(g.Payload), err)
	// Output: 23 02:00:00:00:00:01 VID 101 PCP 1 hello <nil>
}
