package fabric

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// queue holds the frames that arrived at a link and were not polled yet. It is a ring of slots. The
// holder of the fabric's lock fills it, the one polling goroutine empties it; they share no lock.
//
//	        tail           next          head
//	  free   |  handed out  |   waiting   |   free
//	---------+--------------+-------------+---------->  frames, counted from 0
//
// The poller moves next when it hands frames out. At the following Poll, until which the views are
// valid, it moves tail there. It hands out at most half of the slots at once: a receiver asleep in
// Wait, with all its frames handed out, still has room for the frame that is to wake it.
type queue struct {
	slots  []slot
	blocks [][]byte // stride bytes for each of blockSlots slots; nil until the first frame comes there
	stride int
	mask   uint64

	_ [cacheLine]byte

	// The sender's; the fabric's lock guards all but head.
	filled   uint64        // head, without the atomic
	limit    uint64        // frames below this number have a free slot, as of the last look
	reserved uint64        // slots promised to the frame whose path is being planned
	head     atomic.Uint64 // frames below it are there for the poller

	_ [cacheLine]byte

	// The poller's.
	next     uint64        // without the atomic
	lent     uint64        // next - tail
	emptied  atomic.Uint64 // next<<lentBits | lent
	rxBytes  uint64
	rxPublic atomic.Uint64 // rxBytes, for Counters

	_ [cacheLine]byte
}

// lentBits is enough for half of MaxQueueFrames.
const lentBits = 16

// slot is a frame in the queue; its payload lies in queue.blocks.
type slot struct {
	dst, src  transport.MAC
	etherType transport.EtherType
	tag       transport.OptionalTag
	size      int32
}

// blockSlots is how many slots' payloads are allocated together.
const blockSlots = 32

// minPayload is the length to which shorter payloads are padded with zeros. A NIC pads before it
// inserts the tag, so it holds for tagged frames too.
const minPayload = transport.MinFrameLen - transport.HeaderLen

func (q *queue) init(frames, mtu int) {
	q.stride = (mtu + 63) &^ 63
	q.slots = make([]slot, frames)
	q.blocks = make([][]byte, (frames+blockSlots-1)/blockSlots)
	q.mask = uint64(frames - 1)
	q.limit = uint64(frames)
}

// reserve promises a slot to the frame that is being planned, if one is free.
func (q *queue) reserve() bool {
	if q.filled+q.reserved >= q.limit {
		e := q.emptied.Load()
		tail := e>>lentBits - e&(1<<lentBits-1)
		if q.limit = tail + uint64(len(q.slots)); q.filled+q.reserved >= q.limit {
			return false
		}
	}
	q.reserved++
	return true
}

// push fills a reserved slot with a copy of f.
func (q *queue) push(f *transport.Frame) {
	i := q.filled & q.mask
	block := &q.blocks[i/blockSlots]
	if *block == nil {
		*block = make([]byte, min(len(q.slots), blockSlots)*q.stride)
	}
	b := (*block)[int(i%blockSlots)*q.stride:][:q.stride]
	size := copy(b, f.Payload)
	if size < minPayload {
		clear(b[size:minPayload])
		size = minPayload
	}
	q.slots[i] = slot{f.Dst, f.Src, f.EtherType, f.OptionalTag, int32(size)}
	q.reserved--
	q.filled++
	q.head.Store(q.filled)
}

// poll takes back the frames of the last poll and hands out the next ones.
func (q *queue) poll(frames []transport.Frame) int {
	n := min(int(q.head.Load()-q.next), len(frames), max(len(q.slots)/2, 1))
	if n == 0 && q.lent == 0 {
		return 0
	}
	for i := range frames[:n] {
		at := (q.next + uint64(i)) & q.mask
		s, f := &q.slots[at], &frames[i]
		b := q.blocks[at/blockSlots][int(at%blockSlots)*q.stride:]
		f.Dst, f.Src, f.EtherType, f.OptionalTag = s.dst, s.src, s.etherType, s.tag
		f.Payload, f.Headroom, f.Answers, f.Origin = b[:s.size:s.size], nil, nil, 0
		q.rxBytes += uint64(f.WireLen())
	}
	q.next += uint64(n)
	q.lent = uint64(n)
	q.rxPublic.Store(q.rxBytes)
	q.emptied.Store(q.next<<lentBits | q.lent)
	return n
}

// handedOut returns how many frames were handed out. It may be called from any goroutine.
func (q *queue) handedOut() uint64 { return q.emptied.Load() >> lentBits }

// waiting reports whether there is something to poll. It may be called from any goroutine.
func (q *queue) waiting() bool { return q.head.Load() != q.handedOut() }
