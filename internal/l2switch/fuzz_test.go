package l2switch

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// script hands out the fuzzer's bytes, then zeros.
type script []byte

func (s *script) next() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) next16() uint16 { return uint16(s.next())<<8 | uint16(s.next()) }

func (s *script) port() Port {
	p := Port{
		PVID: transport.VID(s.next16() & 0xfff), TaggedOnly: s.next()%4 == 1,
	}
	if s.next()%5 != 1 {
		p.VIDs = []transport.VID{}
	}
	for range s.next() % 4 {
		vid, how := transport.VID(s.next16()&0x1fff), s.next()
		if p.VIDs != nil && how%4 != 0 {
			p.VIDs = append(p.VIDs, vid)
		}
		if how&4 != 0 {
			p.Untagged = append(p.Untagged, vid)
		}
	}
	return p
}

// FuzzSwitch: bytes are the configuration of a switch, then events. After each frame: it leaves by
// no port twice, not by the one it came from, only by members of its VID that are up, with a tag
// that a wire has room for, and counts once.
func FuzzSwitch(f *testing.F) {
	f.Add([]byte("two ports and a frame or so"))
	f.Add([]byte{3, 0, 1, 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 3, 2, 1, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := script(b)
		s := New(Config{Ageing: time.Duration(in.next()) * time.Second, Addresses: int(in.next() % 8)})
		for range in.next() % 8 {
			_, _ = s.AddPort(in.port()) // refused ones are no ports
		}
		now := start
		for frames := uint64(0); len(in) > 0 && s.Ports() > 0; {
			op, port := in.next(), int(in.next())%s.Ports()
			now = now.Add(time.Duration(int8(in.next())) * time.Second) // back, too
			switch op >> 5 {
			case 0:
				s.SetUp(port, op&1 != 0)
			case 1:
				s.Flush()
			default:
				fr := fuzzFrame(&in)
				out := s.Forward(now, port, &fr, nil)
				checkEgress(t, s, port, &fr, out)
				frames++
				if c := s.Counters(); c.Received() != frames || c.Addresses > s.table.max {
					t.Fatalf("after %d frames: %+v, table bound %d", frames, c, s.table.max)
				}
			}
		}
	})
}

func fuzzFrame(in *script) transport.Frame {
	var b [transport.MaxHeaderLen]byte
	f := transport.Frame{Dst: station(in.next()), Src: station(in.next() % 16)}
	f.Tagged = in.next()&1 != 0
	if flags := in.next(); flags < 8 { // any bytes at all
		for i := range b {
			b[i] = in.next()
		}
		f, _ = transport.ParseFrame(b[:])
	}
	if f.Tagged {
		f.Tag = transport.TagFromTCI(in.next16())
	}
	return f
}

func checkEgress(t *testing.T, s *Switch, in int, f *transport.Frame, out []Egress) {
	t.Helper()
	vid := s.ports[in].pvid
	if f.Tagged && f.Tag.VID != 0 {
		vid = f.Tag.VID
	}
	last := -1
	for _, e := range out {
		if e.Port <= last {
			t.Fatalf("ports out of order or twice: %+v", out)
		}
		last = e.Port
		p := s.ports[e.Port]
		if e.Port == in || p.down || vid > transport.MaxVID || p.mode[vid] == excluded {
			t.Fatalf("frame %+v of VID %d came by port %d and leaves by %d (mode %v, down %t)", f, vid, in, e.Port, p.mode[vid], p.down)
		}
		onWire := p.pvid // what the next switch takes it for
		if e.Tagged && e.Tag.VID != 0 {
			onWire = e.Tag.VID
		}
		if e.Tagged && (onWire != vid || e.Tag.Validate() != nil) {
			t.Fatalf("frame of VID %d leaves as %+v", vid, e)
		}
	}
	if f.Dst.IsMulticast() && f.Dst[0] == 1 && f.Dst[1] == 0x80 && f.Dst[2] == 0xc2 && f.Dst[3] == 0 && f.Dst[4] == 0 && f.Dst[5] < 16 && len(out) > 0 {
		t.Fatalf("link-local frame to %v leaves by %+v", f.Dst, out)
	}
}
