package memfifo

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// What a domain keeps for later is bounded: the buffers of one window.
func TestPool_FramesAreBounded(t *testing.T) {
	d, _ := openRaw(t)
	d.mu.Lock()
	defer d.mu.Unlock()
	frames := make([][]byte, 2*spareFrames)
	for i := range frames {
		frames[i] = d.allocFrame()
	}
	for _, b := range frames {
		d.freeFrame(b)
	}
	if n := len(d.pool.frames); n != spareFrames {
		t.Errorf("%d buffers are kept, want %d", n, spareFrames)
	}
}

// Who was woken is not woken again: its completion is another wait's by then.
func TestWaitlist_WakesOnce(t *testing.T) {
	var l waitlist
	first, second := new(mcd.Completion), new(mcd.Completion)
	l = append(l, first)
	l.wake(nil)
	if !first.Done() || len(l) != 0 {
		t.Errorf("done %v, and %d wait", first.Done(), len(l))
	}
	first.Reset()
	l = append(l, second)
	l.wake(ErrClosed)
	if first.Done() || !second.Done() || second.Err() != ErrClosed { //nolint:errorlint // the very value
		t.Errorf("the first is woken again (%v), or the second is not (%v, %v)", first.Done(), second.Done(), second.Err())
	}
}

// Atomic operations need memory at a multiple of 8; windows without them, and empty ones, none.
func TestRegister_Alignment(t *testing.T) {
	d, _ := openRaw(t)
	mem := make([]byte, 64)
	if _, err := d.Register(1, mem[1:9], All); !errors.Is(err, ErrAlignment) {
		t.Errorf("at an odd address: %v, want ErrAlignment", err)
	}
	for id, c := range []struct {
		mem    []byte
		rights Rights
	}{{mem[1:9], Read | Write}, {mem[8:16], All}, {nil, All}} {
		if _, err := d.Register(uint16(id+1), c.mem, c.rights); err != nil {
			t.Errorf("window %d: %v", id+1, err)
		}
	}
}
