package memfifo

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// window returns the window with that id, or nil. A stream of operations on one does not look it up
// each time.
func (d *Domain) window(id uint16) *Window {
	if w := d.recent; w != nil && w.key.ID == id {
		return w
	}
	d.recent = d.windows[id]
	return d.recent
}

// checkWindow says why an operation on some bytes is refused, or 0. The caller holds d.mu.
func (d *Domain) checkWindow(id uint16, secret uint64, off, n uint64, right Rights) (*Window, Refusal) {
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

// write puts data in place: 8 or 4 aligned bytes at once, so that a reader that polls them never
// sees a part.
func (w *Window) write(off uint64, data []byte) {
	to := w.mem[off:]
	switch p := unsafe.Pointer(unsafe.SliceData(to)); {
	case len(data) == 8 && uintptr(p)%8 == 0:
		atomic.StoreUint64((*uint64)(p), binary.NativeEndian.Uint64(data))
	case len(data) == 4 && uintptr(p)%4 == 0:
		atomic.StoreUint32((*uint32)(p), binary.NativeEndian.Uint32(data))
	default:
		copy(to, data)
	}
}

// read copies what is at an offset: 8 or 4 aligned bytes at once.
func (w *Window) read(b []byte, off uint64) {
	from := w.mem[off:]
	switch p := unsafe.Pointer(unsafe.SliceData(from)); {
	case len(b) == 8 && uintptr(p)%8 == 0:
		binary.NativeEndian.PutUint64(b, atomic.LoadUint64((*uint64)(p)))
	case len(b) == 4 && uintptr(p)%4 == 0:
		binary.NativeEndian.PutUint32(b, atomic.LoadUint32((*uint32)(p)))
	default:
		copy(b, from)
	}
}

// changed wakes those who wait for a change, after one that may have a notification.
func (w *Window) changed(notify bool) {
	if notify {
		w.notes.Add(1)
		w.noteWaiters.wake(nil)
	}
	w.waiters.wake(nil)
}

// atomic does an atomic operation on a word, and returns what was there before. The caller holds
// d.mu.
func (d *Domain) atomic(op opcode, id uint16, secret, off, operand, expected uint64) (old uint64, refusal Refusal) {
	w, refusal := d.checkWindow(id, secret, off, 8, Atomic)
	if refusal == 0 && off%8 != 0 {
		refusal = Misaligned
	}
	if refusal == 0 {
		old = operate((*uint64)(unsafe.Pointer(&w.mem[off])), op, operand, expected)
		w.changed(false)
	}
	return old, refusal
}

// put does a put, or a part of one. The caller holds d.mu.
func (d *Domain) put(id uint16, secret, off uint64, data []byte, notify bool) Refusal {
	w, refusal := d.checkWindow(id, secret, off, uint64(len(data)), Write)
	if refusal == 0 {
		w.write(off, data)
		w.changed(notify)
	}
	return refusal
}

func operate(word *uint64, op opcode, operand, expected uint64) (old uint64) {
	switch op {
	case opFetchAdd:
		return atomic.AddUint64(word, operand) - operand
	case opSwap:
		return atomic.SwapUint64(word, operand)
	}
	for { // compareSwap
		old = atomic.LoadUint64(word)
		if old != expected || atomic.CompareAndSwapUint64(word, expected, operand) {
			return old
		}
	}
}

// executeHere does an operation of a node on its own memory. It is done before the call returns,
// and waits for nothing: the program that would make room in a FIFO may be the one that pushes. It
// returns the value if the operation has one. The caller holds d.mu.
func (d *Domain) executeHere(what *request) (value uint64, err error) {
	if d.closed {
		return 0, ErrClosed
	}
	k := what.key
	var refusal Refusal
	switch what.op {
	case opPut:
		refusal = d.put(k.ID, k.Secret, what.off, what.data, what.notify != Never)
	case opPush, opTryPush:
		refusal = d.tryAppend(k.ID, k.Secret, what.data)
	case opGet:
		var w *Window
		if w, refusal = d.checkWindow(k.ID, k.Secret, what.off, uint64(len(what.buf)), Read); refusal == 0 {
			w.read(what.buf, what.off)
		}
	default:
		value, refusal = d.atomic(what.op, k.ID, k.Secret, what.off, what.operand, what.expected)
	}
	return value, what.refused(refusal)
}

// refused returns the error for a refusal that ends an operation, or nil for 0.
func (what *request) refused(refusal Refusal) error {
	switch refusal {
	case 0:
		return nil
	case Full:
		return ErrFull
	}
	return &AccessError{Node: what.key.Node, ID: what.key.ID, Reason: refusal, Count: 1}
}
