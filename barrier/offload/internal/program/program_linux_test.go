package program_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/barrier/internal/slot/slottest"
	"github.com/rawlane/rawlane/barrier/offload/internal/program"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

const (
	center      = 7  // the Center's node; its members are the next ones
	members     = 40 // more than a word has room for
	first       = 5  // the generation in which slots begin
	releaseAt   = 50 // offset of the generation
	algorithm   = 0x01020304
	releaseMark = 1 // label of the release
)

var group = transport.MAC{3, 0, 0, 0, 0, 9}

func mac(rank int) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, byte(rank + 1)} }

// notify returns a frame of a notify, with the checksum that it needs.
func notify(dst, src transport.MAC, kind byte, from, to uint16, label byte, generation, incarnation uint32) []byte {
	b := append(dst[:], src[:]...)
	b = append(b, 0x88, 0xb5, kind, 0, 254, 254)
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = append(b, 0, 0, 0, 3, 0, 28, 0, 0, 0, 0, 0, 0)
	b = append(b, 0x41, 2, label, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1)
	b = binary.BigEndian.AppendUint32(b, generation)
	b = binary.BigEndian.AppendUint32(b, algorithm)
	return seal(binary.BigEndian.AppendUint32(b, incarnation))
}

// seal writes a frame's checksum.
func seal(b []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Update(0, table, b[14:30]), table, b[34:62])
	binary.BigEndian.PutUint32(b[30:], sum)
	return b
}

func arrival(rank int, generation uint32) []byte {
	return notify(mac(0), mac(rank), 0x11, uint16(center+rank), center, 0, generation, uint32(1000+rank))
}

func release(generation uint32) []byte {
	return notify(group, mac(0), 0x12, center, 0x99, releaseMark, generation, 1000)
}

func config() *slot.Config {
	c := &slot.Config{
		Identity: [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1}, Number: 2, Generation: first, Ranks: members,
		Release: release(0),
	}
	for rank := 1; rank < members; rank++ {
		c.Members = append(c.Members, slot.MemberInfo{
			Node: uint16(center + rank), Rank: rank, Incarnation: uint32(1000 + rank), MAC: mac(rank),
		})
	}
	return c
}

// unit is the program with one slot that is open, and the same slot without the program.
type unit struct {
	t       testing.TB
	program *program.Program
	slot    *slot.Slot
	twin    *slottest.Twin
	members map[slot.Key]slot.Member
}

func load(t testing.TB) *unit {
	t.Helper()
	testbed.NeedXDP(t, func(string) error {
		p, err := program.Load(1)
		if err == nil {
			err = errors.Join(p.Close(), p.Unmap())
		}
		return err
	})
	p, err := program.Load(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), p.Unmap()); err != nil {
			t.Error(err)
		}
	})
	u := &unit{t, p, p.Slot(1), slottest.New(new(slot.Slot), config()), map[slot.Key]slot.Member{}}
	c := config()
	for _, m := range c.Members {
		u.members[c.Key(m.Node)] = m.At(1)
		if err := p.AddMember(c.Key(m.Node), m.At(1)); err != nil {
			t.Fatal(err)
		}
	}
	u.reset()
	return u
}

// reset opens both slots in the first generation.
func (u *unit) reset() {
	for _, s := range []*slot.Slot{u.slot, u.twin.Slot} {
		s.Configure(config())
		s.Open(first)
	}
}

// run gives the program and the twin a frame: they do the same.
func (u *unit) run(frame []byte) (slot.Verdict, []byte) {
	u.t.Helper()
	v, out, err := u.program.Run(frame)
	if err != nil {
		u.t.Fatal(err)
	}
	want, wantOut := slot.Pass, []byte(nil)
	if k, may := slottest.KeyOf(frame); may {
		if m, known := u.members[k]; known {
			want, wantOut = u.twin.Handle(frame, &m)
		}
	}
	if v != want || v == slot.Transmit && !bytes.Equal(out, wantOut) || v != slot.Transmit && !bytes.Equal(out, frame) {
		u.t.Fatalf("%x:\nverdict %d, want %d\n%x, want\n%x", frame, v, want, out, wantOut)
	}
	g, p := u.slot.State()
	if tg, tp := u.twin.State(); g != tg || p != tp {
		u.t.Fatalf("%x:\ngeneration %d, phase %d, want %d, %d", frame, g, p, tg, tp)
	}
	for i := range u.slot.Words() {
		g, bits := u.slot.Arrived(i)
		if tg, want := u.twin.Arrived(i); g != tg || bits != want {
			u.t.Fatalf("%x:\nword %d: generation %d, %#x, want %d, %#x", frame, i, g, bits, tg, want)
		}
	}
	return v, out
}

func (u *unit) want(name string, frame []byte, want slot.Verdict) {
	u.t.Helper()
	if v, _ := u.run(frame); v != want {
		u.t.Errorf("%s: verdict %d, want %d", name, v, want)
	}
}

// fill has all members arrive but the last, and the Center.
func (u *unit) fill(generation uint32) {
	u.t.Helper()
	u.slot.Arrive(0, generation)
	u.twin.Arrive(0, generation)
	for rank := 1; rank < members-1; rank++ {
		u.want("an arrival", arrival(rank, generation), slot.Drop)
	}
}

// The program counts each member once, and the frame of the last one becomes the release. A double
// of an earlier generation does not count in the next one.
func TestProgram_Counts(t *testing.T) {
	u := load(t)
	const last = members - 1
	for g := uint32(first); g < first+3; g++ {
		u.fill(g)
		u.want("a double", arrival(3, g), slot.Drop)
		u.want("a late double", arrival(last, g-1), slot.Pass)
		u.want("an early one", arrival(last, g+1), slot.Pass)
		v, out := u.run(append(arrival(last, g), 1, 2, 3)) // padded, as no NIC does
		if v != slot.Transmit || !bytes.Equal(out, release(g)) {
			t.Fatalf("the last one: verdict %d, %x, want %x", v, out, release(g))
		}
		u.want("a late double of the last one", arrival(last, g), slot.Pass)
		u.want("a late double of another", arrival(5, g), slot.Pass)
	}
}

// headed puts a train's headers, as docs/wire-format.md has them, before a frame's payload.
func headed(frame []byte) []byte {
	b := append(bytes.Clone(frame[:12]), 0x08, 0)
	b = append(b, 0x45, 0, 0, byte(28+len(frame)-14), 0, 0, 0x40, 0, 1, 17, 0, 0, 239, 82, 76, 1, 239, 82, 76, 2)
	b = append(b, 0, 1, frame[12], frame[13], 0, byte(8+len(frame)-14), 0, 0)
	return append(b, frame[14:]...)
}

// An arrival behind a train's headers, as members send it that send the Center trains, is one.
func TestProgram_CountsBehindATrainsHeaders(t *testing.T) {
	u := load(t)
	const last = members - 1
	for g := uint32(first); g < first+3; g++ {
		u.slot.Arrive(0, g)
		u.twin.Arrive(0, g)
		for rank := 1; rank < last; rank++ {
			frame := arrival(rank, g)
			if rank%2 == 0 {
				frame = headed(frame)
			}
			u.want("an arrival", frame, slot.Drop)
		}
		u.want("a late double", headed(arrival(last, g-1)), slot.Pass)
		frame := append(headed(arrival(last, g)), 0, 0)
		frame[40], frame[41] = 0xab, 0xcd // the sum, of which the kernel knows the place
		want := append(release(g), 0xab, 0xcd)
		if v, out := u.run(frame); v != slot.Transmit || !bytes.Equal(out, want) {
			t.Fatalf("the last one: verdict %d, %x, want %x", v, out, want)
		}
	}
	counted := headed(arrival(1, first+3))
	for _, at := range []int{12, 14, 17, 20, 21, 23, 26, 33, 35, 36, 39, 45, 80} { // what nobody looks at excepted
		b := bytes.Clone(counted)
		b[at] ^= 1
		u.want("another header", b, slot.Pass)
	}
	for n := 14; n < len(counted); n++ {
		u.want("truncated", counted[:n], slot.Pass)
	}
	train := headed(append(arrival(1, first+3), arrival(1, first+3)[14:]...))
	u.want("a train of two", train, slot.Pass)
	u.want("an arrival", counted, slot.Drop)
}

// The last frame goes on to a Center that waits, and the count stays full until it takes it.
func TestProgram_WakesTheCenter(t *testing.T) {
	u := load(t)
	u.fill(first)
	if !u.slot.Await(first) || !u.twin.Await(first) {
		t.Fatal("not all have arrived")
	}
	u.want("the last one", arrival(members-1, first), slot.Pass)
	if g, p := u.slot.State(); g != first || p != slot.Ours {
		t.Errorf("generation %d, phase %v", g, p)
	}
	u.want("its double", arrival(members-1, first), slot.Drop)
	u.slot.Next(first)
	u.twin.Next(first)
	u.fill(first + 1)
	u.want("the last one, while the Center computes", arrival(members-1, first+1), slot.Transmit)
}

// A frame that differs in anything from a member's arrival goes on, and counts nothing.
func TestProgram_PassesAllElse(t *testing.T) {
	u := load(t)
	for at := range 62 {
		b := arrival(1, first)
		b[at] ^= 0x40
		u.want("another checksum", b, slot.Pass)
		if at < 30 || at >= 34 {
			u.want("another byte", seal(b), slot.Pass)
		}
	}
	other := config()
	other.Identity[0]++
	m := other.Members[0] // as if it were of a group that had the slot before
	u.members[other.Key(m.Node)] = m.At(1)
	if err := u.program.AddMember(other.Key(m.Node), m.At(1)); err != nil {
		t.Fatal(err)
	}
	b := arrival(1, first)
	b[38]++
	u.want("of another group", seal(b), slot.Pass)
	tagged := append(bytes.Clone(arrival(1, first)[:12]), 0x81, 0, 0, 5)
	u.want("tagged", append(tagged, arrival(1, first)[12:]...), slot.Pass)
	for n := 14; n < 62; n++ {
		u.want("truncated", arrival(1, first)[:n], slot.Pass)
	}
	u.want("generation 0", arrival(1, 0), slot.Pass)
	if !u.slot.Close(first) || !u.twin.Close(first) {
		t.Fatal("not closed")
	}
	u.want("of a closed slot", arrival(1, first), slot.Drop)
	for i := range u.slot.Words() {
		if bits := u.slot.Drain(i); i == 0 && bits != 2 {
			t.Errorf("drained %#x", bits)
		}
		u.twin.Drain(i)
	}
	u.want("of a drained slot", arrival(2, first), slot.Pass)
}

// Whatever comes, the program does what the twin does.
func FuzzProgram(f *testing.F) {
	f.Add(arrival(1, first), uint8(0), false)
	f.Add(arrival(members-1, first), uint8(1), true)
	f.Add(append(arrival(members-1, first), 0), uint8(1), false)
	f.Add(headed(arrival(members-1, first)), uint8(1), false)
	u := load(f)
	f.Fuzz(func(t *testing.T, frame []byte, filled uint8, fixed bool) {
		if len(frame) < 14 || len(frame) > 1500 { // the kernel runs no shorter one, and pages limit the others
			return
		}
		u.t = t
		u.reset()
		if filled&1 != 0 {
			u.fill(first)
		}
		if filled&2 != 0 {
			u.slot.Await(first)
			u.twin.Await(first)
		}
		frame = bytes.Clone(frame)
		if fixed && len(frame) >= 62 {
			seal(frame)
		}
		u.run(frame)
	})
}
