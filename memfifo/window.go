package memfifo

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Rights are what other nodes may do to a window.
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

// Window is memory of this node that other nodes with its key may use.
type Window struct {
	d      *Domain
	key    Key
	mem    []byte
	rights Rights

	notes       atomic.Uint64 // notifications so far
	noteWaiters waitlist      // for the next notification; guarded by d.mu
	waiters     waitlist      // for any change; likewise
	waiting     atomic.Int32  // how many these are, or are about to be
	revoked     bool          // guarded by d.mu
	bindings    atomic.Uint64 // how often it was rebound: waits are for one binding
	expected    senders       // that operate on it; guarded by d.mu
}

// Register makes mem a window under an id. The memory is the window's until Revoke; the program may
// read and write it meanwhile, as docs/memory-model.md says. Atomic rights need memory that begins
// at a multiple of 8, as a slice of 8 bytes or more from make does. Errors: ErrTaken, ErrAlignment,
// ErrClosed.
func (d *Domain) Register(id uint16, mem []byte, rights Rights) (*Window, error) {
	if err := checkAlignment(id, mem, rights); err != nil {
		return nil, err
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

func checkAlignment(id uint16, mem []byte, rights Rights) error {
	if rights&Atomic != 0 && len(mem) > 0 && uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return fmt.Errorf("window %d: memory is %w", id, ErrAlignment)
	}
	return nil
}

// Key returns what other nodes need to use the window.
func (w *Window) Key() Key { return w.key }

// Bytes returns the window's memory.
func (w *Window) Bytes() []byte { return w.mem }

// Revoke ends the window: when it returns, no other node touches the memory any more. Waits for it
// end with ErrClosed.
func (w *Window) Revoke() {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if !w.revoked {
		w.revoked = true
		w.expected.release()
		delete(w.d.windows, w.key.ID)
		w.d.recent = nil
		w.wake(ErrClosed)
	}
}

// Rebind gives the window other memory, nil for none, and a new key, which it returns: Revoke and
// Register in one, for those who lend memory for a moment. Waits end with ErrClosed. It allocates
// nothing. Key, Bytes, Load and Store must not be called at the same time, nor WaitWord begin.
// Errors: ErrAlignment, ErrClosed.
func (w *Window) Rebind(mem []byte) (Key, error) {
	if err := checkAlignment(w.key.ID, mem, w.rights); err != nil {
		return Key{}, err
	}
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if w.revoked || w.d.closed {
		return Key{}, ErrClosed
	}
	w.mem, w.key.Secret = mem, secret()
	w.bindings.Add(1)
	w.wake(ErrClosed)
	return w.key, nil
}

// wake ends all waits.
func (w *Window) wake(err error) {
	w.noteWaiters.wake(err)
	w.waiters.wake(err)
}

// Notified returns how many operations with a notification have been completed in the window.
func (w *Window) Notified() uint64 { return w.notes.Load() }

// Wait returns when more than seen operations with a notification have been completed, and how
// many: what they wrote is in place. ErrClosed if the window is revoked or rebound.
func (w *Window) Wait(ctx context.Context, seen uint64) (uint64, error) {
	err := w.sleepUntil(ctx, &w.noteWaiters, func() bool { return w.notes.Load() > seen })
	return w.notes.Load(), err
}

// sleepUntil is Domain.sleepUntil that ends as the window is revoked or rebound: also for one who
// was woken just before, and looks while that is done.
func (w *Window) sleepUntil(ctx context.Context, l *waitlist, holds func() bool) error {
	binding := w.bindings.Load()
	ended := func() bool { return w.revoked || w.bindings.Load() != binding }
	return w.d.sleepUntil(ctx, l, ended, &w.expected, holds)
}

// WaitWord returns when the 8 bytes at an offset, as this machine's uint64, fulfil a condition.
// Other nodes write there with one aligned Put of 8 bytes, or atomically. The condition is
// evaluated in this goroutine, after each operation and each Store; it may call the domain, and may
// be evaluated once more than that.
func (w *Window) WaitWord(ctx context.Context, off int64, ok func(uint64) bool) (v uint64, err error) {
	p, err := w.word(off)
	if err != nil {
		return 0, err
	}
	w.waiting.Add(1) // before the word is looked at: see Store
	defer w.waiting.Add(-1)
	err = w.sleepUntil(ctx, &w.waiters, func() bool { v = p.Load(); return ok(v) })
	return v, err
}

// Load reads the 8 bytes at an offset, at once.
func (w *Window) Load(off int64) (uint64, error) {
	p, err := w.word(off)
	if err != nil {
		return 0, err
	}
	return p.Load(), nil
}

// Store writes the 8 bytes at an offset, at once, and wakes those who wait in WaitWord of this
// window.
func (w *Window) Store(off int64, v uint64) error {
	p, err := w.word(off)
	if err != nil {
		return err
	}
	p.Store(v)
	if w.waiting.Load() > 0 { // a waiter that comes later sees v
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
