// Package memfifo operates on other nodes' memory: remote write and read, fetch-and-op, and FIFOs
// with many writers and one reader, over frames that may be lost.
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
// # Work requests
//
// Each operation is a work request on the send queue of its peer. It has a
// local completion, after which the caller may reuse its argument, and a remote completion, after
// which the operation is done at the owner.
//
//	Put, Push       wait for the local completion; Flush waits for the remote ones
//	Get, FetchAdd   wait for a reply: the remote completion
//	Post            waits for nothing; a Parcel has both completions
//
// # What is promised
//
// Operations of one node on another are done once, and in order, across all kinds: a Push after a
// Put is seen after it. Nothing is written outside a window, without its key, or against its
// rights; refusals come back from Flush. A record in a FIFO is there whole or not at all, and is
// never lost: a FIFO that is full holds up its senders, and gives them room in turn. If a node
// dies, what is under way to it fails with ErrPeerDown in bounded time, and the rest goes on. A
// node that restarts is not taken for its former self.
//
// Not promised: an order between operations of different nodes, or on different nodes; what became
// of operations that failed with ErrPeerDown. docs/memory-model.md says what a reader may rely on.
//
// Nodes set nothing up beforehand, and nodes that do not talk cost each other nothing.
//
// Source: MBCF §2.1 (remote memory, memory-based FIFO); CENJU §3, §4 (parcels, notification).
package memfifo
