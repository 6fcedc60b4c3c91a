package afpacket

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Frames whose tag is in their bytes, as AF_XDP hands them over, are what transport.ParseFrame makes
// of them; a tag of 802.1ad is one, too. Anything shorter than its headers is no frame.
func FuzzParseWhole(f *testing.F) {
	for _, tag := range []transport.OptionalTag{transport.Untagged, transport.Tagged(transport.Tag{VID: 5, PCP: 3})} {
		whole := transport.Frame{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, OptionalTag: tag,
			Payload: []byte("payload")}
		b := whole.AppendTo(nil)
		f.Add(b)
		f.Add(b[:len(b)-len(whole.Payload)])
		f.Add(b[:len(b)-len(whole.Payload)-1])
		if tag.Tagged {
			b = bytes.Clone(b)
			b[12], b[13] = 0x88, 0xa8
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got transport.Frame
		tpid, ok := parseWhole(b, &got)
		asVLAN := bytes.Clone(b)
		service := len(b) >= transport.HeaderLen && b[12] == 0x88 && b[13] == 0xa8
		if service {
			asVLAN[12], asVLAN[13] = 0x81, 0
		}
		want, err := transport.ParseFrame(asVLAN)
		if ok != (err == nil) {
			t.Fatalf("%x: %t, want %v", b, ok, err)
		}
		if !ok {
			return
		}
		if got.Dst != want.Dst || got.Src != want.Src || got.EtherType != want.EtherType || got.OptionalTag != want.OptionalTag ||
			!bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("%x: %+v, want %+v", b, got, want)
		}
		switch {
		case service && tpid != transport.EtherTypeQinQ, !service && want.Tagged && tpid != transport.EtherTypeVLAN, !want.Tagged && tpid != 0:
			t.Errorf("%x: TPID %v", b, tpid)
		}
	})
}
