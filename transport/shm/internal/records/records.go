// Package records is the memory that two processes share: rings of frames, each with one writer and
// one reader, and bells by which writers tell a reader which of its rings to look at.
//
//	memory of a ring
//	   0  head: up to where the reader has given memory back. The reader's.
//	   8  closed: not 0 if nobody reads any more. The reader's.
//	 128  dropped: copies of multicast frames for which there was no room. The writer's.
//	 136  wants: not 0 if the writer waits for room. The writer sets it, the reader clears it.
//	 256  records, 8 bytes aligned
//
//	record                                   word, not 0 once the record is there
//	   0  word                               bits 0 to 31   the payload's length
//	   8  destination, EtherType                  32 to 47  the tag's TCI
//	  16  source                                  48        there is a tag
//	  24  payload                                 56 to 63  what it is: a frame, or a skip
//
// The word behind the last record is 0. A writer that has put several records there writes the word
// of the first one last, so a batch costs the reader's processor one line of cache in which
// something changes. A skip says that the next record is so many bytes from it: where a frame does
// not fit before the end of the memory, or where the reader has given all of it back, and the
// writer starts again at its beginning. So a ring with little in it keeps to the first page.
//
// Whatever the other side writes, no access is outside of the memory: what cannot be is Broken.
package records

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/rawlane/rawlane/transport"
)

// Sizes and places, in bytes.
const (
	headAt    = 0
	closedAt  = 8
	wantsAt   = 136
	droppedAt = 128 // a line of cache, and its neighbour, is one side's alone
	dataAt    = 256

	headerLen = 24
	wordLen   = 8
	// restartAfter keeps a ring whose reader keeps up in the first page of its memory.
	restartAfter = 3 << 10
	// lendPart and framePart say which part of a ring a reader holds at most, before its last
	// frame, and which a frame has at most. So a reader that holds frames and sleeps leaves room
	// for the frame that is to wake it, even if that does not fit before the end of the memory.
	lendPart  = 2
	framePart = 32
	// wakePart is the part of a ring that a reader gives back before it wakes a writer that waits,
	// unless the ring is empty then: so they do not take turns frame by frame.
	wakePart = 4
	// maxSkips is how many skips there may be between two frames: to the beginning, over the gap
	// and to the beginning.
	maxSkips = 3
)

// Bounds of a ring's data, in bytes: powers of two. The smallest holds hundreds of small frames.
const (
	MinData = 128 << 10
	MaxData = 1 << 30
)

// Kinds of records.
const (
	kindFrame = 1
	kindSkip  = 2
)

// Fields of a word.
const (
	tciShift  = 32
	tagged    = 1 << 48
	kindShift = 56
	unused    = 0x00fe << 48
)

// Result of Put and Next.
type Result int

// Results.
const (
	Done   Result = iota
	None          // no room for the frame, or no frame
	Broken        // the other side has written what cannot be
)

// DataFor returns the smallest data of a ring for frames of an MTU.
func DataFor(mtu int) int {
	n := MinData
	for n/framePart < recordLen(mtu)+wordLen {
		n *= 2
	}
	return n
}

// Bytes returns the size of the memory of a ring.
func Bytes(data int) int { return dataAt + data }

// Valid reports whether a ring has that much data, and takes frames of that MTU.
func Valid(data, mtu int) bool {
	return data >= MinData && data <= MaxData && data&(data-1) == 0 && mtu > 0 && mtu <= data &&
		recordLen(mtu)+wordLen <= data/framePart
}

// recordLen returns the length of a record with a payload of n bytes.
func recordLen(n int) int { return headerLen + (n+7)&^7 }

// word returns the atomic that is at an offset of memory. Offsets are multiples of 8.
func word(memory []byte, at uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&memory[at : at+wordLen : at+wordLen][0]))
}

// ring is what both sides have.
type ring struct {
	data []byte
	mask uint64
	head *atomic.Uint64
	lost *atomic.Uint64
	want *atomic.Uint64
	shut *atomic.Uint64
}

func newRing(memory []byte) ring {
	data := memory[dataAt:]
	return ring{
		data: data, mask: uint64(len(data) - 1),
		head: word(memory, headAt), shut: word(memory, closedAt),
		lost: word(memory, droppedAt), want: word(memory, wantsAt),
	}
}

// Writer puts frames into a ring. One goroutine at a time may use it.
//
// When it starts again at the beginning of the memory, the reader still has to find the skip that
// says so: the word that holds it is a gap in what may be written, until head is beyond it.
//
//	|  free  | gap: the skip |  free  |     written from the beginning on, and over the gap
type Writer struct {
	ring
	next  uint64 // where the next record comes, counted from the beginning of all laps
	seen  uint64 // head, as of the last look
	again uint64 // where the writer has last started again,
	gap   uint64 // and where the skip lies that leads there, a lap later
	check uint64 // from here on a look at head may show that the ring is empty
	first uint64 // the first record that the reader does not see yet,
	word  uint64 // and its word, which is not written yet; 0: there is none
}

// NewWriter makes the writer of a ring whose memory is all zero.
func NewWriter(memory []byte) *Writer { return &Writer{ring: newRing(memory), check: restartAfter} }

// Put writes a frame, which the reader does not see before Commit. The source of the frame is src
// if it has none. Results: Done; None, and there is no room; Broken.
func (w *Writer) Put(f *transport.Frame, src transport.MAC) Result {
	size := uint64(len(f.Payload))
	need := uint64(recordLen(len(f.Payload)))
	if w.next >= w.check {
		w.check = w.next + restartAfter
		if !w.look() {
			return Broken
		}
		w.startAgain(need)
	}
	if !w.fits(w.next, need) {
		if !w.look() {
			return Broken
		}
		if !w.skip(need) {
			return None
		}
	}
	at := w.next & w.mask
	b := w.data[at : at+need+wordLen : at+need+wordLen]
	binary.NativeEndian.PutUint64(b[need:], 0)
	copy(b[8:14], f.Dst[:])
	binary.NativeEndian.PutUint16(b[14:], uint16(f.EtherType))
	if f.Src.IsZero() {
		copy(b[16:22], src[:])
	} else {
		copy(b[16:22], f.Src[:])
	}
	copy(b[headerLen:], f.Payload)
	head := size | kindFrame<<kindShift
	if f.Tagged {
		head |= tagged | uint64(f.Tag.TCI())<<tciShift
	}
	w.write(w.next, head)
	w.next += need
	return Done
}

// limit returns where there is no room any more, as of the last look at head.
func (w *Writer) limit() uint64 { return max(w.seen, w.again) + uint64(len(w.data)) }

// fits reports whether there is room for a record at a place.
func (w *Writer) fits(at, need uint64) bool {
	end := at + need + wordLen
	return end <= w.limit() && at&w.mask+need+wordLen <= uint64(len(w.data)) && !w.meetsGap(at, need)
}

// meetsGap reports whether the gap is in what is to be written: a record, and the word behind it.
func (w *Writer) meetsGap(at, need uint64) bool {
	return w.seen < w.again && at <= w.gap && at+need >= w.gap
}

// skip goes to the next place where there is room for a record, if there is one: behind the gap, or
// at the beginning of the memory.
func (w *Writer) skip(need uint64) bool {
	var to [maxSkips]uint64
	at := w.next
	for n := range to {
		switch {
		case w.fits(at, need):
			for _, next := range to[:n] {
				w.skipTo(next)
			}
			return true
		case w.meetsGap(at, need):
			at = w.gap + wordLen
		default:
			at += uint64(len(w.data)) - at&w.mask
		}
		to[n] = at
	}
	return false
}

// startAgain has an empty ring start at the beginning of its memory.
func (w *Writer) startAgain(need uint64) {
	at, all := w.next&w.mask, uint64(len(w.data))
	if w.seen == w.next && at >= restartAfter && at >= need+wordLen {
		w.gap, w.again = w.next+all, w.next+all-at
		w.skipTo(w.again)
		w.check = w.again + restartAfter
	}
}

// skipTo has the reader go on elsewhere.
func (w *Writer) skipTo(at uint64) {
	w.write(w.next, at-w.next|kindSkip<<kindShift)
	w.next = at
}

// look reads how much the reader has given back. It returns false if that cannot be.
func (w *Writer) look() bool {
	before := w.seen
	w.seen = w.head.Load()
	return w.seen >= before && w.seen <= w.next
}

// write writes the word of a record, or keeps it, if it is the first one since Commit.
func (w *Writer) write(at, head uint64) {
	if w.word == 0 {
		w.first, w.word = at, head
		return
	}
	binary.NativeEndian.PutUint64(w.data[at&w.mask:], head)
}

// Hidden returns how many bytes were put since the last Commit.
func (w *Writer) Hidden() int {
	if w.word == 0 {
		return 0
	}
	return int(w.next - w.first)
}

// Commit shows the reader what was put. Its bell is to be rung afterwards.
func (w *Writer) Commit() {
	if w.word != 0 {
		word(w.data, w.first&w.mask).Store(w.word)
		w.word = 0
	}
}

// Want has the reader's Release tell that there is room again. A Put that was refused is to be
// tried once more afterwards.
func (w *Writer) Want() { w.want.Store(1) }

// Read returns how many bytes the reader had given back as of the last Put that was refused.
func (w *Writer) Read() uint64 { return w.seen }

// Closed reports whether nobody reads any more.
func (w *Writer) Closed() bool { return w.shut.Load() != 0 }

// Drop counts a frame for which there was no room.
func (w *Writer) Drop() { w.lost.Store(w.lost.Load() + 1) }

// Reader takes frames out of a ring. One goroutine at a time may use it, but for Dropped.
type Reader struct {
	ring
	next uint64 // the next record
	back uint64 // head, without the atomic: what lies before it was given back
	told uint64 // next, when a writer that waits was woken last
}

// NewReader makes the reader of a ring.
func NewReader(memory []byte) *Reader { return &Reader{ring: newRing(memory)} }

// Next takes the next frame. Its payload is a view of the ring, until Release. Results: Done; None:
// nothing is there, or what is held has to be given back first, which Full tells; Broken.
func (r *Reader) Next(f *transport.Frame) Result {
	for range maxSkips + 1 {
		if r.Full() {
			return None
		}
		at := r.next & r.mask
		head := word(r.data, at).Load()
		if head == 0 {
			return None
		}
		size := head & 0xffffffff
		all := uint64(len(r.data))
		switch head >> kindShift {
		case kindSkip:
			if head != size|kindSkip<<kindShift || size == 0 || size%wordLen != 0 || at+size > all {
				return Broken
			}
			nothing := r.next == r.back
			if r.next += size; nothing { // what is skipped is not held
				r.back = r.next
				r.head.Store(r.next)
			}
			continue
		case kindFrame:
		default:
			return Broken
		}
		if head&unused != 0 || size > all || recordLen(int(size))+wordLen > int(all/framePart) {
			return Broken
		}
		need := uint64(recordLen(int(size)))
		if at+need+wordLen > all || head&tagged == 0 && head>>tciShift&0xffff != 0 {
			return Broken
		}
		f.OptionalTag = transport.OptionalTagFromTCI(head&tagged != 0, uint16(head>>tciShift))
		if f.Tag.VID > transport.MaxVID {
			return Broken
		}
		b := r.data[at : at+need : at+need]
		f.Dst, f.Src = transport.MAC(b[8:14]), transport.MAC(b[16:22])
		f.EtherType = transport.EtherType(binary.NativeEndian.Uint16(b[14:]))
		f.Payload, f.Headroom, f.Answers, f.Origin = b[headerLen:headerLen+size:headerLen+size], nil, nil, 0
		r.next += need
		return Done
	}
	return Broken
}

// Full reports whether the reader holds as much as it may.
func (r *Reader) Full() bool { return r.next-r.back >= uint64(len(r.data))/lendPart }

// Taken returns how far the reader is, in bytes of all laps.
func (r *Reader) Taken() uint64 { return r.next }

// Waiting reports whether Next would find a record, after Release.
func (r *Reader) Waiting() bool { return word(r.data, r.next&r.mask).Load() != 0 }

// Release gives the memory of all frames that were taken back to the writer. wake says that the
// writer waits for it.
func (r *Reader) Release() (wake bool) {
	if r.back != r.next {
		r.back = r.next
		r.head.Store(r.next)
	}
	if r.want.Load() == 0 || r.next-r.told < uint64(len(r.data))/wakePart && r.Waiting() {
		return false
	}
	r.told = r.next
	r.want.Store(0)
	return true
}

// Close says that nobody reads any more.
func (r *Reader) Close() { r.shut.Store(1) }

// Dropped returns how often the writer has called Drop. It may be called at any time.
func (r *Reader) Dropped() uint64 { return r.lost.Load() }
