package memfifo

import "testing"

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
