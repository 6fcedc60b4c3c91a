package l2switch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// naive is the switch written down as the standard reads: slices, maps and no care for speed.
type naive struct {
	ports     []Port
	down      []bool
	heard     []heard
	ageing    time.Duration
	addresses int
}

type heard struct {
	vid  transport.VID
	mac  transport.MAC
	port int
	at   monotime.Time
}

func (n *naive) mode(port int, vid transport.VID) mode {
	p := n.ports[port]
	switch {
	case p.VIDs != nil && !slices.Contains(p.VIDs, vid):
		return excluded
	case slices.Contains(p.Untagged, vid):
		return untagged
	case vid == n.pvid(port) && !p.TaggedOnly:
		return keep
	}
	return tagged
}

func (n *naive) pvid(port int) transport.VID {
	if n.ports[port].PVID == 0 {
		return 1
	}
	return n.ports[port].PVID
}

func (n *naive) forget(gone func(heard) bool) { n.heard = slices.DeleteFunc(n.heard, gone) }

func (n *naive) forward(now monotime.Time, in int, f *transport.Frame) (out []Egress) {
	n.forget(func(h heard) bool { return n.ageing >= 0 && now.Sub(h.at) >= n.ageing })
	p := n.ports[in]
	hasVID := f.Tagged && f.Tag.VID > 0
	vid := n.pvid(in)
	if hasVID {
		vid = f.Tag.VID
	}
	reserved := transport.MAC{0x01, 0x80, 0xc2, 0, 0, f.Dst[5] & 0x0f}
	if n.down[in] || f.Dst == reserved || p.TaggedOnly && !hasVID {
		return nil
	}
	if vid == 4095 || n.mode(in, vid) == excluded || f.Src.IsMulticast() || f.Src == (transport.MAC{}) {
		return nil
	}
	known := slices.IndexFunc(n.heard, func(h heard) bool { return h.vid == vid && h.mac == f.Src })
	if known >= 0 {
		n.heard[known].port, n.heard[known].at = in, now
	} else if len(n.heard) < n.addresses {
		n.heard = append(n.heard, heard{vid, f.Src, in, now})
	}
	to := slices.IndexFunc(n.heard, func(h heard) bool { return h.vid == vid && h.mac == f.Dst })
	for port := range n.ports {
		if port == in || n.down[port] || n.mode(port, vid) == excluded {
			continue
		}
		if !f.Dst.IsMulticast() && to >= 0 && n.heard[to].port != port {
			continue
		}
		out = append(out, n.leave(port, vid, f))
	}
	return out
}

func (n *naive) leave(port int, vid transport.VID, f *transport.Frame) Egress {
	with := Egress{Port: port, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
	if f.Tagged {
		with.Tag.PCP, with.Tag.DEI = f.Tag.PCP, f.Tag.DEI
	}
	without := Egress{Port: port}
	switch mode := n.mode(port, vid); {
	case mode == untagged:
		return without
	case mode == tagged:
		return with
	case !f.Tagged:
		return without
	default:
		with.Tag.VID = f.Tag.VID
		return with
	}
}

// 200 random switches, 500 random operations on each: the fast one and the naive one agree on every
// frame.
func TestSwitch_AgreesWithNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		cfg := Config{Ageing: time.Duration(1+rng.IntN(50)) * time.Second, Addresses: 1 + rng.IntN(20)}
		if rng.IntN(4) == 0 {
			cfg.Ageing = NeverAge
		}
		s := New(cfg)
		n := &naive{ageing: cfg.Ageing, addresses: cfg.Addresses}
		for range 2 + rng.IntN(6) {
			p := randomPort(rng)
			if _, err := s.AddPort(p); err != nil {
				t.Fatal(err)
			}
			n.ports, n.down = append(n.ports, p), append(n.down, false)
		}
		if !agree(t, rng, s, n) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func agree(t *testing.T, rng *rand.Rand, s *Switch, n *naive) bool {
	now := start
	for op := range 500 {
		now = now.Add(time.Duration(rng.IntN(3)) * time.Second)
		port := rng.IntN(len(n.ports))
		switch rng.IntN(40) {
		case 0:
			up := rng.IntN(3) > 0
			s.SetUp(port, up)
			if n.down[port] = !up; !up {
				n.forget(func(h heard) bool { return h.port == port })
			}
			continue
		case 1:
			s.Flush()
			n.heard = nil
			continue
		}
		f := randomFrame(rng)
		got, want := s.Forward(now, port, &f, nil), n.forward(now, port, &f)
		if !slices.Equal(got, want) {
			t.Errorf("operation %d: frame %+v into port %d: %+v, naive: %+v", op, f, port, got, want)
			return false
		}
	}
	return true
}

// vids are few, so that things meet.
var vids = []transport.VID{1, 2, 3, 4094}

func randomPort(rng *rand.Rand) Port {
	p := Port{
		PVID:       append([]transport.VID{0}, vids...)[rng.IntN(len(vids)+1)],
		TaggedOnly: rng.IntN(4) == 0,
	}
	all := rng.IntN(3) == 0
	if !all {
		p.VIDs = []transport.VID{}
	}
	for _, vid := range vids {
		member := rng.IntN(4) > 0
		if member && !all {
			p.VIDs = append(p.VIDs, vid)
		}
		if (member || all) && !p.TaggedOnly && rng.IntN(3) == 0 {
			p.Untagged = append(p.Untagged, vid)
		}
	}
	return p
}

func randomFrame(rng *rand.Rand) transport.Frame {
	macs := []transport.MAC{transport.Broadcast, {1, 0x80, 0xc2, 0, 0, 2}, {3, 1}, {}}
	address := func() transport.MAC {
		if i := rng.IntN(24); i < len(macs) {
			return macs[i]
		}
		return station(byte(1 + rng.IntN(12)))
	}
	f := transport.Frame{Dst: address(), Src: address()}
	f.Tagged = rng.IntN(2) == 0
	if f.Tagged {
		f.Tag = transport.TagFromTCI(uint16(rng.Uint32()))
		if i := rng.IntN(len(vids) + 2); i < len(vids) {
			f.Tag.VID = vids[i]
		} else if i == len(vids) {
			f.Tag.VID = 0
		}
	}
	return f
}

// The table against Go's map, over growth, removal and refusal when full.
func TestTable_AgreesWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, twin := newTable(1000), make(map[uint64]int32)
	for op := range 50_000 {
		k := key(transport.VID(1+rng.IntN(3)), station(byte(rng.Uint32())))
		switch e := table.lookup(k); {
		case rng.IntN(5000) == 0:
			gone := int32(rng.IntN(8))
			table.removeIf(func(s *slot) bool { return s.port == gone })
			for k, port := range twin {
				if port == gone {
					delete(twin, k)
				}
			}
		case e == nil:
			if _, ok := twin[k]; ok {
				t.Fatalf("operation %d: key %x is lost", op, k)
			}
			port := rng.IntN(8)
			if table.insert(k, port, start, NeverAge) {
				twin[k] = int32(port)
			} else if len(twin) < 1000 {
				t.Fatalf("operation %d: no room with %d of 1000", op, len(twin))
			}
		case e.port != twin[k]:
			t.Fatalf("operation %d: key %x is at %d, want %d", op, k, e.port, twin[k])
		}
		if table.used != len(twin) {
			t.Fatalf("operation %d: %d entries, want %d", op, table.used, len(twin))
		}
	}
}
