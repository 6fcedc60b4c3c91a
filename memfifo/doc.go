// Package memfifo does things to other nodes' memory: remote write and read, fetch-and-op, and
// FIFOs that many write and one reads, over frames that may be lost.
//
//	owner                                    any other node that has the key
//	mem := make([]byte, 4096)
//	w, err := d.Register(1, mem, All)
//	w.Key() ---------------------------->    r := d.Remote(key)
//	                                         err = r.Put(ctx, 100, data)     // mem[100:] = data
//	                                         old, err := r.FetchAdd(ctx, 0, 1)
//	                                         err = d.Flush(ctx)              // all is there
//	q, err := d.NewFIFO(1, make([]byte, 1<<16))
//	q.Key() ---------------------------->    err = d.Remote(key).Push(ctx, record)
//	n, err := q.Pop(ctx, buf)
//
// # What is promised
//
// What one node does to another arrives once, and in order, across all operations: a Push after a
// Put is seen after it. Nothing is written outside a window, without its key, or against its
// rights; refusals come back from Flush. A record in a FIFO is there whole or not at all, and is
// never lost: a FIFO that is full holds up those who push. If a node dies, what is under way to it
// fails with ErrPeerDown in bounded time, and the rest goes on. A node that begins anew is not
// taken for its former self.
//
// Put returns when its argument may be reused (local completion); it is in place when a later Flush
// has returned (remote completion), or when the owner was notified. docs/memory-model.md says what
// a reader may rely on.
//
// Not promised: an order between operations of different nodes, or on different nodes; what became
// of operations that failed with ErrPeerDown.
//
// Nothing is set up between nodes beforehand, and nodes that do not talk cost each other nothing.
//
// Source: MBCF §2.1 (remote memory), §2.2 (memory-based FIFO); CENJU §3, §4 (parcels,
// notification).
package memfifo
