package memfifo

import (
	"sync/atomic"
	"testing"
)

// Len is a length while records come and go: neither less than none, nor more than the memory.
func TestFIFO_LenWhileRecordsComeAndGo(t *testing.T) {
	f := &FIFO{ring: ring{mem: make([]byte, MinFIFO)}}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			f.ring.append(nil)
			_, end, _ := f.ring.oldest()
			f.ring.head.Store(end)
		}
	}()
	for range 1_000_000 {
		if n := f.Len(); n < 0 || n > MinFIFO {
			t.Errorf("%d bytes of %d are in use", n, MinFIFO)
			break
		}
	}
	over.Store(true)
	<-done
}
