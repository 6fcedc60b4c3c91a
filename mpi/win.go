package mpi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Win is memory of the processes of a communicator in which each of them reads, writes and updates
// elements without the owner's part in it: MPI_Win. Its methods may be called from any goroutine;
// Fence and Free, as collective operations, are called by all processes in one order.
//
// Elements are reached in an epoch, which one of these begins: Fence; Lock or LockAll; Start. What
// was written is in place once the epoch is over, and after Flush. The owner reads and writes its
// memory between two fences in which nobody else does, while it holds a lock of its own rank, or
// when Wait has returned.
//
// It is revoked with the communicator that it was made of: what waits ends with ErrRevoked, and
// Free is what is left to do.
//
// ProcNull is nobody here, too: what is done there is complete at once, and needs no epoch.
//
// Put and Get take no part in the order of updates: elements that one process updates another one
// must not put, or get, in the same epoch.
type Win[T Element] struct{ *window }

// window is a Win without its type.
type window struct {
	w       *World
	comm    *Comm // of its own
	parent  *Comm // that it was made of
	kind    reflect.Kind
	element int    // bytes of one
	memory  []byte // of this process
	updater updater
	members []*member
	lent    *memfifo.Window

	// World.mu guards these.
	ready     bool // the members are known: it is among World.windows
	settled   bool // what memfifo refuses by a member's number is of this window
	freed     bool
	broken    error // a fence has failed
	fenced    bool  // in the epoch after a fence
	allLocked bool  // by LockAll
	started   []*member
	exposed   []*member
	exposures int       // that are over
	locks     lockQueue // of this process' memory
	calls     map[uint32]*call
	spare     []*call
	lastID    uint32
	waiters   []*mcd.Completion
	aligned   []uint64 // elements of a record
	answered  []byte   // the last answer
}

// member is a process of a window. World.mu guards what is not set when it is made.
type member struct {
	p      *process
	rank   int             // in the communicator
	size   int             // elements
	memory *memfifo.Remote // nil if it has none
	to     *memfifo.Remote // its handler

	queue     [][]byte // records that wait for room
	busy      bool     // a goroutine sends them
	expected  bool     // it is probed
	lock      uint32   // the lock there that this process holds, or waits for
	held      bool     // it is granted
	started   bool     // this process is between Start and Complete
	posts     int      // that no Start has taken
	completes int      // that no Wait has taken
	freed     bool     // it has freed the window alone
	refused   bool     // a put or so, as memfifo says: its memory is gone for good
	updates   uint64   // how often it was sent some
	confirmed uint64   // up to which of these flushes have confirmed them
}

// NewWin makes a window of what each process gives, each as much as it likes, none, too. It is
// MPI_Win_create, and collective: all processes of the communicator call it. The memory is the
// window's until Free. Errors: ErrWindows; those of Split, as a window takes a communicator.
func NewWin[T Element](ctx context.Context, c *Comm, memory []T) (*Win[T], error) {
	v := &window{w: c.w, element: sizeOf[T](), memory: bytesOf(memory), calls: map[uint32]*call{}}
	v.kind, v.updater = updaterOf[T]()
	if err := v.open(ctx, c); err != nil {
		return nil, fmt.Errorf("new window: %w", err)
	}
	return &Win[T]{v}, nil
}

func (v *window) open(ctx context.Context, c *Comm) (err error) {
	if v.comm, err = c.split(ctx, 0, c.rank, true); err != nil {
		return err
	}
	v.parent = c
	err = errUnreturned
	defer func() {
		if err != nil {
			v.giveUp()
			err = c.failure(err)
		}
	}()
	return v.make(ctx)
}

// make makes the window, together with the others.
func (v *window) make(ctx context.Context) error {
	key, err := v.lend()
	if err2 := v.exchange(ctx, key); err == nil { // the others wait for it
		err = err2
	}
	if err == nil {
		err = v.forgetRefusals(ctx)
	}
	if err == nil {
		err = v.comm.Barrier(ctx) // from now on all know all keys
	}
	return err
}

// giveUp ends a window that is not made, or not by all.
func (v *window) giveUp() {
	if v.ready {
		v.tellFreed() // to those for which it is made
	}
	_, _ = v.comm.barrierGroup() // those that are in its barrier hear that this process leaves it
	v.release()
}

// lend makes the memory one that other processes may use, and takes their records.
func (v *window) lend() (key memfifo.Key, err error) {
	if v.lent, err = v.w.takeWindow(maxLent); err == nil {
		err = v.w.takeWindowRecords()
	}
	if err == nil {
		key, err = v.lent.Rebind(v.memory)
	}
	return key, err
}

// takeWindowRecords has the world take the records of windows, from the first one on.
func (w *World) takeWindowRecords() (err error) {
	w.windowsOnce.Do(func() {
		w.windowHandler, w.windowErr = w.layer.Domain.Handle(windowHandlerID, memfifo.HandlerConfig{
			Record: w.receiveWindow, Public: true,
		})
	})
	return w.windowErr
}

// exchange gives all processes the keys of all. That of one which has no memory to lend is zero.
func (v *window) exchange(ctx context.Context, key memfifo.Key) error {
	var own [4]uint64
	if key != (memfifo.Key{}) {
		own = [...]uint64{uint64(len(v.memory) / v.element), uint64(v.kind), uint64(key.ID), key.Secret}
	}
	all := make([]uint64, len(own)*v.comm.Size())
	if err := Allgather(ctx, v.comm, own[:], all); err != nil {
		return err
	}
	w, domain := v.w, v.w.layer.Domain
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, rank := range v.comm.members {
		a, p := all[k*len(own):], w.all[rank]
		switch kind := reflect.Kind(a[1]); {
		case kind == 0:
			return fmt.Errorf("rank %d has none: %w", k, ErrWindows)
		case kind != v.kind:
			return fmt.Errorf("elements at rank %d are of kind %v, here %v", k, kind, v.kind)
		}
		v.members = append(v.members, &member{
			p: p, rank: k, size: int(a[0]),
			memory: domain.Remote(memfifo.Key{Node: p.ID, ID: uint16(a[2]), Secret: a[3]}),
			to:     domain.Remote(memfifo.PublicKey(p.ID, windowHandlerID)),
		})
		p.met = true // from now on the window's records may go to it
	}
	if w.closed {
		return ErrClosed
	}
	v.ready = true
	w.windows[v.comm.context] = v
	return nil
}

// forgetRefusals waits for what was refused in memory that had the number of a member's before: no
// flush of this window tells of that.
func (v *window) forgetRefusals(ctx context.Context) error {
	err := v.w.layer.Domain.Flush(ctx, v.w.nodes(v.comm.members)...)
	err = errors.Join(v.flushed(nil, err)...)
	v.w.mu.Lock()
	v.settled = err == nil
	v.w.mu.Unlock()
	return err
}

// release ends the use of the memory by others.
func (v *window) release() {
	bound := v.lent != nil
	if bound {
		_, err := v.lent.Rebind(nil)
		bound = err == nil
	}
	w := v.w
	w.mu.Lock()
	if bound {
		w.giveWindow(v.lent)
	}
	if v.ready {
		delete(w.windows, v.comm.context)
	}
	v.freed = true
	w.leaving = append(w.leaving, v)
	w.forgetWindows()
	v.end(ErrFreed)
	v.parent.windows = slices.DeleteFunc(v.parent.windows, func(d *Comm) bool { return d == v.comm })
	w.mu.Unlock()
	v.comm.endFree(true)
}

// forgetWindows forgets the windows that were freed and have sent all, and returns how many are
// left. The caller holds mu.
func (w *World) forgetWindows() int {
	w.leaving = slices.DeleteFunc(w.leaving, func(v *window) bool { sent, _ := v.sent(); return sent })
	return len(w.leaving)
}

// Free ends the window: MPI_Win_free. All processes call it, none in an epoch but that of a fence,
// and it returns when all have. One that was revoked is freed without a wait. Errors: ErrEpoch,
// ErrFreed and ErrClosed, and then nothing was done; those of Fence, and then the window is freed
// alone, and its memory is the caller's.
func (v *window) Free(ctx context.Context) error {
	w := v.w
	w.mu.Lock()
	err := v.usable(nil)
	if errors.Is(err, ErrRevoked) { // its epochs are over
		v.freed = true
		w.mu.Unlock()
		v.release()
		return nil
	}
	if err == nil {
		err = v.outside()
	}
	if err == nil {
		v.freed = true
		err = v.free(ctx)
	} else {
		w.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("free window: %w", err)
	}
	return nil
}

// free ends a window that is free of epochs: with all others, or alone if that fails. The caller
// holds World.mu, which free gives back.
func (v *window) free(ctx context.Context) (err error) {
	err = errUnreturned
	defer func() {
		v.w.mu.Unlock()
		if err != nil {
			v.tellFreed()
		}
		v.release()
	}()
	if v.broken != nil { // then its barrier is still entered
		return v.broken
	}
	if err := v.await(ctx, v.sent); err != nil {
		return err
	}
	return v.meet(ctx)
}

// tellFreed tells all others that the window is freed without them.
func (v *window) tellFreed() {
	for _, m := range v.members {
		v.w.mu.Lock()
		v.tell(m, &wire.WindowRecord{Kind: wire.Freed})
	}
}

// usable says why a window, or a member of it, is not usable. The caller holds World.mu.
func (v *window) usable(m *member) error {
	switch {
	case v.w.closed:
		return ErrClosed
	case v.freed:
		return ErrFreed
	case v.comm.revoked.Load():
		return ErrRevoked
	case m != nil && m.p.err != nil:
		return m.p.err
	case m != nil && m.freed:
		return fmt.Errorf("at rank %d: %w", m.rank, ErrFreed)
	}
	return nil
}

// target returns the member that n elements are of, or nil for nobody.
func (v *window) target(rank, at, n int) (*member, error) {
	if err := v.checkRank(rank); err != nil || rank == ProcNull {
		return nil, err
	}
	m := v.members[rank]
	if at < 0 || at > m.size || n > m.size-at {
		return nil, fmt.Errorf("%d elements at %d: %w (it has %d)", n, at, ErrRange, m.size)
	}
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	err := v.usable(m)
	if err == nil && !v.reaches(m) {
		err = ErrEpoch
	}
	return m, err
}

// reaches reports whether this process is in an epoch at a member. The caller holds World.mu.
func (v *window) reaches(m *member) bool { return v.fenced || m.held || m.started }

// Put writes data at a rank, from element at on. It is MPI_Put, and returns when data may be
// changed. Errors: ErrRank, ErrRange, ErrEpoch, ErrFreed, ErrClosed; a *ProcessError; ctx's, and
// then a part of it may have been written.
func (v *Win[T]) Put(ctx context.Context, data []T, rank, at int) error {
	m, err := v.target(rank, at, len(data))
	if err == nil && m != nil && len(data) > 0 {
		err = v.outcome(m, m.memory.Put(ctx, int64(at*v.element), bytesOf(data)))
	}
	return failure("put to", rank, err)
}

// Get reads buf at a rank, from element at on. It is MPI_Get, and returns when buf has them.
// Errors: those of Put.
func (v *Win[T]) Get(ctx context.Context, buf []T, rank, at int) error {
	m, err := v.target(rank, at, len(buf))
	if err == nil && m != nil {
		from, into := int64(at*v.element), bytesOf(buf)
		for k := 0; k < len(into) && err == nil; k += maxGet {
			err = v.outcome(m, m.memory.Get(ctx, from+int64(k), into[k:min(k+maxGet, len(into))]))
		}
	}
	return failure("get from", rank, err)
}

// Accumulate updates the elements at a rank, from at on, with data. It is MPI_Accumulate, and
// returns when data may be changed. Updates are made at the owner, by records, so all updates of an
// element are one behind the other, and those of one process in their order. Errors: those of Put;
// ErrOp.
func (v *Win[T]) Accumulate(ctx context.Context, data []T, rank, at int, u Update) error {
	m, err := v.target(rank, at, len(data))
	if err == nil {
		err = v.checkUpdate(u)
	}
	if err == nil && m != nil {
		err = v.accumulate(ctx, m, at, bytesOf(data), nil, u)
	}
	return failure("accumulate to", rank, err)
}

// GetAccumulate is Accumulate that puts what the elements were before into result, which is as long
// as data; with Keep data may be empty. It is MPI_Get_accumulate.
func (v *Win[T]) GetAccumulate(ctx context.Context, data, result []T, rank, at int, u Update) error {
	if u == Keep && len(data) == 0 {
		data = result
	}
	m, err := v.target(rank, at, len(data))
	if err == nil {
		err = v.checkUpdate(u)
	}
	if err == nil {
		err = checkCount("result", len(result), len(data))
	}
	if err == nil && m != nil {
		err = v.accumulate(ctx, m, at, bytesOf(data), bytesOf(result), u)
	}
	return failure("get and accumulate to", rank, err)
}

// FetchAndOp updates one element at a rank, and returns what it was: MPI_Fetch_and_op. Errors:
// those of Accumulate.
func (v *Win[T]) FetchAndOp(ctx context.Context, value T, rank, at int, u Update) (old T, err error) {
	m, err := v.target(rank, at, 1)
	if err == nil {
		err = v.checkUpdate(u)
	}
	if err == nil && m != nil {
		was := make([]T, 1)
		err = v.accumulate(ctx, m, at, bytesOf([]T{value}), bytesOf(was), u)
		old = was[0]
	}
	return old, failure("fetch from", rank, err)
}

// CompareAndSwap replaces one element at a rank by value if it is compare, to the bit, and returns
// what it was: MPI_Compare_and_swap. Errors: those of Put.
func (v *Win[T]) CompareAndSwap(ctx context.Context, compare, value T, rank, at int) (old T, err error) {
	m, err := v.target(rank, at, 1)
	if err == nil && m != nil {
		was := make([]T, 1)
		err = v.ask(ctx, m, &wire.WindowRecord{
			Kind: wire.CompareSwap, At: uint64(at), Data: bytesOf([]T{compare, value}),
		}, bytesOf(was))
		old = was[0]
	}
	return old, failure("compare and swap at", rank, err)
}

// failure says what has failed, and where.
func failure(what string, rank int, err error) error {
	if err != nil {
		return fmt.Errorf("%s rank %d: %w", what, rank, err)
	}
	return nil
}

// outcome is what a failed operation of memfifo's means here.
func (v *window) outcome(m *member, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, memfifo.ErrPeerDown):
		v.w.mu.Lock()
		defer v.w.mu.Unlock()
		if m.p.err != nil {
			return m.p.err
		}
		return &ProcessError{Rank: int(m.p.rank), Err: err}
	case errors.Is(err, memfifo.ErrAccess):
		return ErrFreed
	case errors.Is(err, memfifo.ErrClosed):
		return ErrClosed
	}
	return err
}
