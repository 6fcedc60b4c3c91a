package afpacket

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

const ours = transport.EtherTypeDefault

// train returns the bytes of a packet, without a tag, from its addresses on.
func train(kind trainKind, etherType transport.EtherType, payload []byte) []byte {
	f := transport.Frame{Dst: transport.MAC{2, 0, 0, 0, 0, 2}, Src: transport.MAC{2, 0, 0, 0, 0, 1}, EtherType: etherTypeIPv4}
	b := append(make([]byte, transport.MaxHeaderLen), make([]byte, TrainOverhead)...)
	n := f.PutHeader(b)
	putTrainHeader(b[n:], kind, etherType, len(payload))
	return append(b[:n+TrainOverhead], payload...)
}

// The headers, byte by byte: see docs/wire-format.md.
func TestTrainHeader_Golden(t *testing.T) {
	const want = "45000024000040000111" + "0321" + "ef524c01ef524c02" + "0001" + "88b5" + "0010" + "76ca"
	b := make([]byte, TrainOverhead)
	putTrainHeader(b, trainFrames, ours, 8)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// checksum is RFC 1071's, as a table-free second opinion.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// The IPv4 header's checksum is whole, the UDP header has the pseudo-header's.
func TestTrainHeader_Checksums(t *testing.T) {
	for _, size := range []int{0, 1, 18, 1472, 4096, 36744, maxTrainBytes, 65535 - TrainOverhead} {
		b := make([]byte, TrainOverhead)
		putTrainHeader(b, trainAnswer, 0xfffe, size)
		if sum := checksum(b[:trainIP]); sum != 0xffff {
			t.Errorf("%d bytes: the IPv4 header's sum is %#x", size, sum)
		}
		pseudo := append(bytes.Clone(b[12:20]), 0, protocolUDP, b[24], b[25])
		if got, want := binary.BigEndian.Uint16(b[26:]), checksum(pseudo); got != want {
			t.Errorf("%d bytes: UDP %#x, want %#x", size, got, want)
		}
	}
}

func TestParseTrain(t *testing.T) {
	payload := []byte("0123456789")
	set := func(at int, to ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], to); return b }
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		ok     bool
	}{
		{"as it was sent", set(0), true},
		{"padded", func(b []byte) []byte { return append(b, make([]byte, 8)...) }, true},
		{"another EtherType", set(12, 0x88, 0xb5), false},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"shorter than its headers", func(b []byte) []byte { return b[:trainHeader-1] }, false},
		{"nothing", func([]byte) []byte { return nil }, false},
		{"IPv6", set(14, 0x65), false},
		{"with IP options", set(14, 0x46), false},
		{"an IP length below the headers", set(16, 0, TrainOverhead-1), false},
		{"an IP length beyond the frame", set(16, 0, TrainOverhead+11), false},
		{"the first fragment", set(20, 0x20, 0), false},
		{"a later fragment", set(20, 0, 1), false},
		{"TCP", set(23, 6), false},
		{"from another address", set(29, 9), false},
		{"to another address", set(33, 9), false},
		{"for another EtherType", set(37, 0xb6), false},
		{"a UDP length that is another", set(38, 0, 17), false},
	} {
		b := c.change(train(trainOffer, ours, payload))
		kind, got, ok := parseTrain(b, ours)
		if ok != c.ok || ok && (kind != trainOffer || !bytes.Equal(got, payload)) {
			t.Errorf("%s: %v, %v, %q", c.name, ok, kind, got)
		}
	}
}

// Which frames go together: for one station, by one path, none longer than the first, none but the
// last shorter.
func TestTrainLen(t *testing.T) {
	a, b := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	frames := func(lengths ...int) (fs []transport.Frame) {
		for _, n := range lengths {
			fs = append(fs, transport.Frame{Dst: b, EtherType: ours, Payload: make([]byte, n)})
		}
		return fs
	}
	change := func(fs []transport.Frame, at int, f func(*transport.Frame)) []transport.Frame {
		f(&fs[at])
		return fs
	}
	many := func(n, size int) []transport.Frame {
		lengths := make([]int, n)
		for i := range lengths {
			lengths[i] = size
		}
		return frames(lengths...)
	}
	for _, c := range []struct {
		name   string
		frames []transport.Frame
		want   int
	}{
		{"one", frames(100), 1},
		{"equal", many(5, 100), 5},
		{"too few", many(3, 100), 1},
		{"the fewest", many(4, 100), 4},
		{"the last is shorter", frames(100, 100, 100, 99), 4},
		{"a shorter one is the last", frames(100, 100, 100, 99, 100), 4},
		{"a longer one goes next", frames(100, 100, 100, 100, 101), 4},
		{"a longer one goes second", frames(100, 101, 101, 101), 1},
		{"nothing in the first", many(4, 0), 1},
		{"nothing in one", frames(9, 9, 9, 9, 0), 4},
		{"as long as fits", many(4, 1472), 4},
		{"too long for the headers", many(4, 1473), 1},
		{"no more than a kernel takes", many(70, 64), 64},
		{"no more than a packet takes", many(64, 1472), 44},
		{"another station", change(many(6, 9), 4, func(f *transport.Frame) { f.Dst = a }), 4},
		{"another source", change(many(6, 9), 4, func(f *transport.Frame) { f.Src = a }), 4},
		{"another EtherType", change(many(6, 9), 4, func(f *transport.Frame) { f.EtherType++ }), 4},
		{"another tag", change(many(6, 9), 4, func(f *transport.Frame) { f.OptionalTag = transport.Tagged(transport.Tag{VID: 1}) }), 4},
		{"a group", change(many(4, 9), 0, func(f *transport.Frame) { f.Dst = transport.Broadcast }), 1},
	} {
		if got := trainLen(c.frames, 1500); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A train comes apart into the frames that it was made of, however many are asked for at a time.
func TestTrain_ComesApart(t *testing.T) {
	for range 200 {
		size, length := 1+rand.IntN(50), 1+rand.IntN(1000)
		payload := make([]byte, length)
		for i := range payload {
			payload[i] = byte(rand.Uint32())
		}
		tr := Train{rest: payload, size: size, frame: transport.Frame{EtherType: ours, Src: transport.MAC{2}}}
		var joined []byte
		for at := 0; tr.Left(); {
			out := make([]transport.Frame, 1+rand.IntN(7))
			n := tr.Next(out)
			if n != len(out) && tr.Left() || n == 0 {
				t.Fatalf("%d of %d frames, with more left", n, len(out))
			}
			for _, f := range out[:n] {
				want := min(size, length-at)
				if len(f.Payload) != want || cap(f.Payload) != want || f.Src != (transport.MAC{2}) || f.EtherType != ours {
					t.Fatalf("%d bytes (cap %d), want %d", len(f.Payload), cap(f.Payload), want)
				}
				at += want
				joined = append(joined, f.Payload...)
			}
		}
		if !bytes.Equal(joined, payload) {
			t.Fatal("the frames' bytes are not the train's")
		}
	}
}

// Whatever comes from a wire, what is taken from it lies within it.
func FuzzParseTrain(f *testing.F) {
	f.Add(train(trainFrames, ours, []byte("0123456789")))
	f.Add(train(trainOffer, ours, make([]byte, 2*controlLen)))
	f.Add([]byte(strings.Repeat("\x45", 60)))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, payload, ok := parseTrain(b, ours)
		if !ok {
			return
		}
		if len(payload)+trainHeader > len(b) {
			t.Fatalf("%d bytes of payload in %d", len(payload), len(b))
		}
		again := train(kind, ours, payload) // but for what routers change: the type of service, for one
		if !bytes.Equal(again[12:15], b[12:15]) || !bytes.Equal(again[26:40], b[26:40]) {
			t.Errorf("%x is read as %x", b, again)
		}
		s := newStations(rand.Uint64)
		for rest := payload; len(rest) > 0; rest = rest[min(controlLen, len(rest)):] {
			s.receive(kind, transport.MAC{2}, rest[:min(controlLen, len(rest))])
		}
	})
}
