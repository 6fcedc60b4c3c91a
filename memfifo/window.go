package memfifo

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/rawlane/rawlane/mcd"
)

// Rights are what others may do to a window.
type Rights uint8

// The rights.
const (
	Read   Rights = 1 << iota // Get
	Write                     // Put, Signal
	Atomic                    // FetchAdd, CompareSwap, Swap

	All = Read | Write | Atomic
)

// String formats r as "read+write".
func (r Rights) String() string {
	s := ""
	for i, name := range []string{"read", "write", "atomic"} {
		if r&(1<<i) != 0 {
			s += "+" + name
		}
	}
	if s == "" {
		return "none"
	}
	return s[1:]
}

// Window is memory of this node that others with its key may use.
type Window struct {
	d      *Domain
	key    Key
	mem    []byte
	rights Rights

	notes   atomic.Uint64 // notifications so far
	noters  waitlist      // who waits for notes; guarded by d.mu, as are
	waiters waitlist      // those who wait for any change
	waiting atomic.Int32  // how many these are, or are about to be
	revoked bool          // guarded by d.mu
}

// Register makes mem a window under an id. The memory is the window's until Revoke; the program may read and write it
// meanwhile, as docs/memory-model.md says. Atomic rights need memory that begins at a multiple of 8, as all that make
// gives does from 8 bytes on. ErrTaken, ErrAlignment, ErrClosed.
func (d *Domain) Register(id uint16, mem []byte, rights Rights) (*Window, error) {
	if rights&Atomic != 0 && len(mem) > 0 && uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, fmt.Errorf("window %d: memory is %w", id, ErrAlignment)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.windows[id] != nil {
		return nil, fmt.Errorf("window %d: %w", id, ErrTaken)
	}
	w := &Window{d: d, key: Key{d.ep.Node(), id, secret()}, mem: mem, rights: rights}
	d.windows[id] = w
	return w, nil
}

// Key returns what others need to use the window.
func (w *Window) Key() Key { return w.key }

// Bytes returns the window's memory.
func (w *Window) Bytes() []byte { return w.mem }

// Revoke ends the window: when it returns nobody else touches the memory any more. Waits for it end with ErrClosed.
func (w *Window) Revoke() {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if !w.revoked {
		w.revoked = true
		delete(w.d.windows, w.key.ID)
		w.d.recent = nil
		w.wake(ErrClosed)
	}
}

// wake ends all waits.
func (w *Window) wake(err error) {
	w.noters.wake(err)
	w.waiters.wake(err)
}

// Notified returns how many operations with a notification have been completed in the window.
func (w *Window) Notified() uint64 { return w.notes.Load() }

// Wait returns when more than seen operations with a notification have been completed, and how many: what they wrote is in
// place. ErrClosed if the window is revoked.
func (w *Window) Wait(ctx context.Context, seen uint64) (uint64, error) {
	err := w.await(ctx, &w.noters, func() bool { return w.notes.Load() > seen })
	return w.notes.Load(), err
}

// WaitWord returns when the 8 bytes at an offset, as this machine's uint64, fulfil a condition. Others write there with
// one aligned Put of 8 bytes, or atomically. The condition is looked at after each operation and each Store, with the domain locked: it
// must not call the domain, or Store.
func (w *Window) WaitWord(ctx context.Context, off int64, ok func(uint64) bool) (v uint64, err error) {
	p, err := w.word(off)
	if err != nil {
		return 0, err
	}
	w.waiting.Add(1) // before the word is looked at: see Store
	defer w.waiting.Add(-1)
	err = w.await(ctx, &w.waiters, func() bool { v = p.Load(); return ok(v) })
	return v, err
}

// Load returns the 8 bytes at an offset, at once. Store writes them so, and has those look at them who wait in WaitWord of this window.
func (w *Window) Load(off int64) (uint64, error) {
	p, err := w.word(off)
	if err != nil {
		return 0, err
	}
	return p.Load(), nil
}

// Store writes the 8 bytes at an offset, at once, as seen by others' operations.
func (w *Window) Store(off int64, v uint64) error {
	p, err := w.word(off)
	if err != nil {
		return err
	}
	p.Store(v)
	if w.waiting.Load() > 0 { // or who comes next sees v
		w.d.mu.Lock()
		w.waiters.wake(nil)
		w.d.mu.Unlock()
	}
	return nil
}

func (w *Window) word(off int64) (*atomic.Uint64, error) {
	if off < 0 || off > int64(len(w.mem))-8 {
		return nil, fmt.Errorf("window %d: word at %d of %d bytes: out of range", w.key.ID, off, len(w.mem))
	}
	p := unsafe.Pointer(&w.mem[off])
	if uintptr(p)%8 != 0 {
		return nil, fmt.Errorf("window %d: word at %d: %w", w.key.ID, off, ErrAlignment)
	}
	return (*atomic.Uint64)(p), nil
}

// await waits until a condition holds, which is looked at after each change.
func (w *Window) await(ctx context.Context, list *waitlist, ok func() bool) error {
	for {
		w.d.mu.Lock()
		if ok() {
			w.d.mu.Unlock()
			return nil
		}
		if w.revoked || w.d.closed {
			w.d.mu.Unlock()
			return ErrClosed
		}
		wait := w.d.getWaiter()
		list.add(wait)
		w.d.mu.Unlock()
		if err := w.d.sleep(ctx, wait, list); err != nil {
			return err
		}
	}
}

// window returns the window with that id, or nil. A stream of operations on one does not look it up each time.
func (d *Domain) window(id uint16) *Window {
	if w := d.recent; w != nil && w.key.ID == id {
		return w
	}
	d.recent = d.windows[id]
	return d.recent
}

// check says why an operation on some bytes is refused, or 0. The caller holds d.mu.
func (d *Domain) check(id uint16, secret uint64, off, n uint64, right Rights) (*Window, Refusal) {
	w := d.window(id)
	switch {
	case w == nil:
		return nil, NoSuchID
	case w.key.Secret != secret:
		return nil, WrongKey
	case off > uint64(len(w.mem)) || n > uint64(len(w.mem))-off:
		return nil, OutOfRange
	case w.rights&right != right:
		return nil, NoRight
	}
	return w, 0
}

// write puts data in place: 8 or 4 aligned bytes at once, so that who polls them never sees a part.
func (w *Window) write(off uint64, data []byte) {
	if len(data) > 0 {
		p := unsafe.Pointer(&w.mem[off])
		switch {
		case len(data) == 8 && uintptr(p)%8 == 0:
			atomic.StoreUint64((*uint64)(p), binary.NativeEndian.Uint64(data))
		case len(data) == 4 && uintptr(p)%4 == 0:
			atomic.StoreUint32((*uint32)(p), binary.NativeEndian.Uint32(data))
		default:
			copy(w.mem[off:], data)
		}
	}
}

// read copies what is at an offset: 8 or 4 aligned bytes at once.
func (w *Window) read(b []byte, off uint64) {
	if len(b) > 0 {
		p := unsafe.Pointer(&w.mem[off])
		switch {
		case len(b) == 8 && uintptr(p)%8 == 0:
			binary.NativeEndian.PutUint64(b, atomic.LoadUint64((*uint64)(p)))
		case len(b) == 4 && uintptr(p)%4 == 0:
			binary.NativeEndian.PutUint32(b, atomic.LoadUint32((*uint32)(p)))
		default:
			copy(b, w.mem[off:])
		}
	}
}

// changed wakes who waits for a change, after one that is to be notified or may be.
func (w *Window) changed(notify bool) {
	if notify {
		w.notes.Add(1)
		w.noters.wake(nil)
	}
	w.waiters.wake(nil)
}

// waitlist is who waits for something, each until it is woken once.
type waitlist struct{ first *waiter }

// waiter is a goroutine that waits.
type waiter struct {
	completion mcd.Completion
	next       *waiter
	listed     bool
}

func (l *waitlist) add(w *waiter) {
	w.completion.Reset()
	w.next, w.listed = l.first, true
	l.first = w
}

// wake completes all.
func (l *waitlist) wake(err error) {
	for w := l.first; w != nil; {
		next := w.next
		w.next, w.listed = nil, false
		w.completion.Complete(err)
		w = next
	}
	l.first = nil
}

func (l *waitlist) remove(w *waiter) {
	for at := &l.first; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			break
		}
	}
	w.next, w.listed = nil, false
}
