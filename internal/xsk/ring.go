package xsk

import (
	"sync/atomic"
	"unsafe"
)

// Desc is a frame in the rx or the tx ring: struct xdp_desc.
type Desc struct {
	Addr    uint64 // of its first byte in the memory
	Len     uint32 // bytes
	Options uint32
}

// needWakeup is the flag of a ring that the kernel does not look at by itself
// (XDP_RING_NEED_WAKEUP).
const needWakeup = 1

// offsets are where the parts of a ring are in its memory: struct xdp_ring_offset.
type offsets struct{ producer, consumer, desc, flags uint64 }

// entry is what a ring holds: the fill and the completion ring hold addresses.
type entry interface{ uint64 | Desc }

// ring is a queue in memory that two sides share. Both indices count up for ever, modulo 2^32. That
// of the other side is not trusted: a process may have the socket that another one has made.
type ring[T entry] struct {
	producer, consumer, flags *uint32
	entries                   []T
	mask                      uint32
	next                      uint32 // our index
}

// newRing returns the ring of so many entries, a power of two, in the memory.
func newRing[T entry](memory []byte, at offsets, entries int) ring[T] {
	return ring[T]{
		producer: (*uint32)(unsafe.Pointer(&memory[at.producer])),
		consumer: (*uint32)(unsafe.Pointer(&memory[at.consumer])),
		flags:    (*uint32)(unsafe.Pointer(&memory[at.flags])),
		entries:  unsafe.Slice((*T)(unsafe.Pointer(&memory[at.desc])), entries),
		mask:     uint32(entries - 1),
	}
}

// NeedWakeup reports whether the kernel looks at the ring only when it is called.
func (r *ring[T]) NeedWakeup() bool { return atomic.LoadUint32(r.flags)&needWakeup != 0 }

// between returns how far an index is ahead of another: no further than the ring is long.
func (r *ring[T]) between(behind, ahead uint32) int {
	return int(min(ahead-behind, uint32(len(r.entries))))
}

// Producer is the program's end of a ring that the kernel consumes: fill or tx.
type Producer[T entry] struct{ ring[T] }

// Waiting returns how many entries the kernel has not taken yet.
func (p *Producer[T]) Waiting() int { return p.between(atomic.LoadUint32(p.consumer), p.next) }

// Room returns how many entries fit.
func (p *Producer[T]) Room() int { return len(p.entries) - p.Waiting() }

// Put adds an entry, for which there must be room. The kernel sees it after Submit.
func (p *Producer[T]) Put(v T) {
	p.entries[p.next&p.mask] = v
	p.next++
}

// Withdraw makes void what the kernel has not taken, and returns those entries. They keep their
// places in the ring, as void ones. It is for an interface that is down: of an entry that a driver
// takes meanwhile, as it comes up again, nobody knows whether it was void.
func (p *Producer[T]) Withdraw(void T, entries []T) []T {
	for i := p.next - uint32(p.Waiting()); i != p.next; i++ {
		entries = append(entries, p.entries[i&p.mask])
		p.entries[i&p.mask] = void
	}
	return entries
}

// Submit shows the kernel all entries that were put.
func (p *Producer[T]) Submit() { atomic.StoreUint32(p.producer, p.next) }

// Consumer is the program's end of a ring that the kernel produces: rx or completion.
type Consumer[T entry] struct{ ring[T] }

// Ready returns how many entries there are to take.
func (c *Consumer[T]) Ready() int { return c.between(c.next, atomic.LoadUint32(c.producer)) }

// Take returns the next entry, of those that are ready.
func (c *Consumer[T]) Take() T {
	v := c.entries[c.next&c.mask]
	c.next++
	return v
}

// Release gives the room of the entries that were taken back to the kernel.
func (c *Consumer[T]) Release() { atomic.StoreUint32(c.consumer, c.next) }
