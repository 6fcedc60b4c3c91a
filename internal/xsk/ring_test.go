package xsk

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// shared is the memory of a ring, aligned as the kernel's.
func shared(entries int, size uintptr) ([]byte, offsets) {
	at := offsets{producer: 0, consumer: 64, flags: 128, desc: 192}
	words := make([]uint64, (int(at.desc)+entries*int(size)+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8), at
}

// ends are both ends of a ring: ours, and the kernel's, played by the other type.
func ends(entries int, start uint32) (Producer[uint64], Consumer[uint64]) {
	memory, at := shared(entries, 8)
	p, c := Producer[uint64]{newRing[uint64](memory, at, entries)}, Consumer[uint64]{newRing[uint64](memory, at, entries)}
	*p.producer, *p.consumer = start, start
	p.next, c.next = start, start
	return p, c
}

// Whatever is put comes out once and in order, also where the indices pass 2^32; what was not
// submitted does not show, nor does room that was not released.
func TestRing_AgreesWithAQueue(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		entries := 1 << rng.IntN(6)
		p, c := ends(entries, ^uint32(0)-uint32(rng.IntN(3*entries)))
		var put, submitted []uint64
		value, taken := uint64(0), 0
		for range 300 {
			switch rng.IntN(4) {
			case 0:
				for range rng.IntN(p.Room() + 1) {
					p.Put(value)
					put = append(put, value)
					value++
				}
			case 1:
				p.Submit()
				submitted, put = append(submitted, put...), put[:0]
			case 2:
				if c.Ready() != len(submitted) {
					t.Fatalf("seed %d: %d ready, want %d", seed, c.Ready(), len(submitted))
				}
				for range rng.IntN(c.Ready() + 1) {
					if v := c.Take(); v != submitted[0] {
						t.Fatalf("seed %d: took %d, want %d", seed, v, submitted[0])
					}
					submitted = submitted[1:]
					taken++
				}
			case 3:
				c.Release()
				taken = 0
			}
			if want := entries - len(put) - len(submitted) - taken; p.Room() != want {
				t.Fatalf("seed %d: room for %d of %d, want %d", seed, p.Room(), entries, want)
			}
		}
	}
}

// Withdraw takes back what the other side has not released, and leaves void entries in its place.
func TestProducer_Withdraw(t *testing.T) {
	p, c := ends(4, ^uint32(0)-1)
	for v := range uint64(3) {
		p.Put(v + 10)
	}
	p.Submit()
	if c.Take(); true {
		c.Release()
	}
	if got := p.Withdraw(99, nil); !slices.Equal(got, []uint64{11, 12}) {
		t.Errorf("withdrew %v, want 11 and 12", got)
	}
	if c.Ready() != 2 || c.Take() != 99 || c.Take() != 99 {
		t.Error("the entries are not void")
	}
	c.Release()
	if got := p.Withdraw(99, nil); len(got) != 0 || p.Room() != 4 {
		t.Errorf("withdrew %v, room for %d", got, p.Room())
	}
}

func TestRing_NeedWakeup(t *testing.T) {
	p, _ := ends(2, 0)
	for flags, want := range map[uint32]bool{0: false, 1: true, 2: false, 3: true} {
		if *p.flags = flags; p.NeedWakeup() != want {
			t.Errorf("flags %d: %t", flags, p.NeedWakeup())
		}
	}
}

func TestFrame(t *testing.T) {
	memory := make([]byte, 4*2048)
	for i := range memory {
		memory[i] = byte(i / 2048)
	}
	for _, c := range []struct {
		name  string
		desc  Desc
		chunk uint64
		ok    bool
	}{
		{"the first chunk", Desc{Addr: 0, Len: 2048}, 0, true},
		{"behind headroom", Desc{Addr: 2048 + 256, Len: 60}, 2048, true},
		{"to the end of its chunk", Desc{Addr: 3*2048 + 256, Len: 2048 - 256}, 3 * 2048, true},
		{"one byte into the next chunk", Desc{Addr: 256, Len: 2048 - 255}, 0, false},
		{"of no bytes", Desc{Addr: 2047, Len: 0}, 0, true},
		{"behind the memory", Desc{Addr: 4 * 2048, Len: 0}, 0, false},
		{"far behind it", Desc{Addr: 1 << 63, Len: 60}, 0, false},
		{"longer than anything", Desc{Addr: 0, Len: 1<<32 - 1}, 0, false},
	} {
		b, chunk, ok := frame(memory, 2048, c.desc)
		if ok != c.ok || ok && (chunk != c.chunk || len(b) != int(c.desc.Len) || cap(b) != len(b)) {
			t.Errorf("%s: %d bytes of %d, chunk %d, %t", c.name, len(b), cap(b), chunk, ok)
		}
		if ok && len(b) > 0 && b[0] != byte(c.chunk/2048) {
			t.Errorf("%s: another chunk's bytes", c.name)
		}
	}
}

// Whatever stands in a descriptor, the bytes lie in the chunk that is named.
func FuzzFrame(f *testing.F) {
	f.Add(uint64(256), uint32(60))
	f.Add(uint64(3*2048+256), uint32(1792))
	f.Add(^uint64(0), ^uint32(0))
	memory := make([]byte, 4*2048)
	f.Fuzz(func(t *testing.T, addr uint64, size uint32) {
		b, chunk, ok := frame(memory, 2048, Desc{Addr: addr, Len: size})
		if !ok {
			return
		}
		if chunk%2048 != 0 || chunk >= uint64(len(memory)) || len(b) != int(size) || addr < chunk || addr+uint64(size) > chunk+2048 {
			t.Errorf("%d bytes at %d: chunk %d", size, addr, chunk)
		}
	})
}

// What the other side writes into the indices, whatever it is, is no more entries than the ring has:
// the memory is shared with whoever has the socket's descriptor.
func TestRing_IndicesAreNotTrusted(t *testing.T) {
	for _, index := range []uint32{0, 1, 4, 5, 1 << 31, ^uint32(0)} {
		p, c := ends(4, 0)
		*p.consumer, *c.producer = index, index
		if p.Room() < 0 || p.Room() > 4 || p.Waiting() > 4 || len(p.Withdraw(99, nil)) > 4 {
			t.Errorf("consumer %d: room for %d of 4, %d wait", index, p.Room(), p.Waiting())
		}
		if c.Ready() > 4 {
			t.Errorf("producer %d: %d of 4 ready", index, c.Ready())
		}
	}
}
