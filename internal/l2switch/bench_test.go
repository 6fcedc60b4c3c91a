package l2switch

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
)

func benchmarkForward(b *testing.B, ports, stations int, dst func(i int) transport.MAC) {
	s := New(Config{})
	for range ports {
		if _, err := s.AddPort(Port{}); err != nil {
			b.Fatal(err)
		}
	}
	out := make([]Egress, 0, ports)
	for i := range stations {
		s.Forward(start, i%ports, untaggedFrame(unicastTo(i), transport.Broadcast), out)
	}
	f := untaggedFrame(unicastTo(0), unicastTo(1))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from := i % stations
		f.Src, f.Dst = unicastTo(from), dst((from+1)%stations)
		out = s.Forward(start, from%ports, f, out[:0])
	}
}

func unicastTo(i int) transport.MAC {
	return transport.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

func BenchmarkForward_2Stations(b *testing.B)    { benchmarkForward(b, 2, 2, unicastTo) }
func BenchmarkForward_48Stations(b *testing.B)   { benchmarkForward(b, 48, 48, unicastTo) }
func BenchmarkForward_4096Stations(b *testing.B) { benchmarkForward(b, 48, 4096, unicastTo) }
func BenchmarkForward_Broadcast48Ports(b *testing.B) {
	benchmarkForward(b, 48, 48, func(int) transport.MAC { return transport.Broadcast })
}

func BenchmarkTable_Lookup(b *testing.B) {
	t := newTable(DefaultAddresses)
	for i := range 1024 {
		t.insert(key(1, unicastTo(i)), 1, start, NeverAge)
	}
	for i := 0; b.Loop(); i++ {
		if t.lookup(key(1, unicastTo(i&1023))) == nil {
			b.Fatal("lost")
		}
	}
}

func BenchmarkTable_LookupInGoMap(b *testing.B) {
	t := make(map[uint64]*slot)
	for i := range 1024 {
		t[key(1, unicastTo(i))] = new(slot)
	}
	for i := 0; b.Loop(); i++ {
		if t[key(1, unicastTo(i&1023))] == nil {
			b.Fatal("lost")
		}
	}
}
