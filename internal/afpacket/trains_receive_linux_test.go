package afpacket

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// A received packet is frames of its segments' length, one frame, or none: what is refused is counted
// by its cause, and hands nothing out.
func TestReceivedTrain(t *testing.T) {
	payload := []byte("0123456789abcdefghijklmno")
	whole := train(trainFrames, ours, payload)
	set := func(at int, to ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], to)
		return b
	}
	for _, c := range []struct {
		name              string
		b                 []byte
		length            int // before it was cut to fit; 0: as b
		size              int // of a segment; 0: it was not joined
		ok, mayBe         bool
		frames            []string
		trains, malformed uint64
		noRoom            uint64
	}{
		{name: "joined", b: whole, size: 10, ok: true, mayBe: true, frames: []string{"0123456789", "abcdefghij", "klmno"}, trains: 1},
		{name: "joined of one", b: whole, size: 25, ok: true, mayBe: true, frames: []string{string(payload)}},
		{name: "cut on its way", b: whole, ok: true, mayBe: true, frames: []string{string(payload)}},
		{name: "a plain frame", b: set(12, 0x88, 0xb5), size: 10},
		{name: "of somebody else", b: set(29, 9), mayBe: true, malformed: 1},
		{name: "for a group not joined", b: set(0, 3), size: 10, mayBe: true},
		{name: "longer than a slot", b: whole, length: 1000, size: 100, mayBe: true, noRoom: 10},
		{name: "longer, of short frames", b: whole, length: 1000, size: 1, mayBe: true, noRoom: 1000 / trainHeader},
		{name: "longer, and not joined", b: whole[:20], length: 30, mayBe: true, noRoom: 1},
		{name: "of a kind to come", b: train(9, ours, payload), mayBe: true},
	} {
		a := &Attachment{cfg: Config{EtherType: ours}}
		a.groups = newGroups(1, nil)
		virtio := make([]byte, VirtioLen)
		if c.size > 0 {
			virtio[1] = virtioUDP
			binary.NativeEndian.PutUint16(virtio[4:], uint16(c.size))
		}
		r := Received{Bytes: c.b, Len: max(len(c.b), c.length), Status: unix.TP_STATUS_VLAN_VALID, TCI: 100}
		var tr Train
		ok, mayBe := ReceivedTrain(a, r, virtio, &tr)
		out := make([]transport.Frame, 9)
		out = out[:tr.Next(out)]
		if ok != c.ok || mayBe != c.mayBe || len(out) != len(c.frames) || tr.Left() {
			t.Errorf("%s: %v, %v, %d frames", c.name, ok, mayBe, len(out))
			continue
		}
		for i, f := range out {
			if string(f.Payload) != c.frames[i] || f.EtherType != ours || f.Src != (transport.MAC{2, 0, 0, 0, 0, 1}) ||
				f.Dst != (transport.MAC{2, 0, 0, 0, 0, 2}) || f.OptionalTag != transport.Tagged(transport.Tag{VID: 100}) {
				t.Errorf("%s: frame %d: %+v", c.name, i, f)
			}
		}
		if a.rx.trains.Load() != c.trains || a.rx.malformed.Load() != c.malformed || a.rx.noRoom.Load() != c.noRoom {
			t.Errorf("%s: %d trains, %d malformed, %d without room", c.name, a.rx.trains.Load(), a.rx.malformed.Load(), a.rx.noRoom.Load())
		}
	}
}

// An offer that comes joined is answered like one that was cut on its way, by as many packets as it has
// segments or in one; half of one is not.
func TestReceivedTrain_Offers(t *testing.T) {
	b := (&control{vid: -1, number: 9}).append(nil)
	for _, c := range []struct {
		name    string
		packets [][]byte
		size    int
		answers int
	}{
		{"joined", [][]byte{b}, controlLen, 1},
		{"cut", [][]byte{b[:controlLen], b[controlLen:]}, 0, 1},
		{"half", [][]byte{b[:controlLen]}, 0, 0},
		{"joined wrongly", [][]byte{b}, controlLen - 1, 0},
	} {
		s, _, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
		a := &Attachment{cfg: Config{EtherType: ours}}
		a.groups, a.sender.fd, a.sender.trains = newGroups(1, nil), s.fd, s.trains
		a.sender.ifi = &Interface{MAC: transport.MAC{2, 0, 0, 0, 0, 2}} // as train has it
		for _, p := range c.packets {
			virtio := make([]byte, VirtioLen)
			if c.size > 0 {
				virtio[1] = virtioUDP
				binary.NativeEndian.PutUint16(virtio[4:], uint16(c.size))
			}
			packet := train(trainOffer, ours, p)
			if ok, mayBe := ReceivedTrain(a, Received{Bytes: packet, Len: len(packet)}, virtio, new(Train)); ok || !mayBe {
				t.Errorf("%s: %v, %v", c.name, ok, mayBe)
			}
		}
		if n := packets(trained); n != c.answers {
			t.Errorf("%s: %d answers, want %d", c.name, n, c.answers)
		}
		if a.rx.trains.Load() != 0 {
			t.Errorf("%s: an offer is counted as a train", c.name)
		}
	}
}

// Where the kernel refuses trains none are offered to others by an answer, and none is believed.
func TestControl_WhereTrainsAreOff(t *testing.T) {
	s, _, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
	b := (&control{vid: -1, number: 9}).append(nil)
	from := transport.Frame{Src: stationA, Dst: s.ifi.MAC}
	for _, off := range []bool{true, false} {
		s.trains.off = off
		s.control(trainOffer, &from, b[:controlLen])
		s.control(trainOffer, &from, b[controlLen:])
		if n := packets(trained); (n > 0) == off {
			t.Errorf("trains are off: %v, and there are %d answers", off, n)
		}
	}
}
