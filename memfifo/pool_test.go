package memfifo

import (
	"context"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

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

// Who has waited for a word or a record is not counted any more: what is stored or pushed after that
// looks for nobody.
func TestWaiting_IsOver(t *testing.T) {
	d, _ := openRaw(t)
	w, err := d.Register(1, make([]byte, 8), All)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.NewFIFO(2, make([]byte, 1024))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WaitWord(t.Context(), 0, func(uint64) bool { return true }); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	if n, m := w.waiting.Load(), f.waiting.Load(); n != 0 || m != 0 {
		t.Errorf("%d wait for a word, and %d for a record", n, m)
	}
}
