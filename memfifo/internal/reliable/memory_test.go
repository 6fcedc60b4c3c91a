package reliable

import (
	"slices"
	"testing"
	"time"
	"unsafe"
)

// A sender that has filled its window keeps no buffer once all is acknowledged; nor does the
// receiver.
func TestMemory_IdleEndsKeepNothing(t *testing.T) {
	p := newPair(t, 120).open()
	for p.ends[0].write(p.now, Requests, 100) {
	}
	if n := len(p.ends[0].pool.out); n != Window {
		t.Errorf("%d buffers are out, want the window's %d", n, Window)
	}
	p.settle()
	p.pass(time.Second)
	for _, e := range p.ends {
		if n := len(e.pool.out); n > 0 || !e.done() {
			t.Errorf("%d has %d buffers, done %t", e.node, n, e.done())
		}
	}
}

// Buffers of frames out of order are freed, however short the frame was.
func TestMemory_OutOfOrder(t *testing.T) {
	p := newPair(t, 120).open()
	for range 10 {
		p.ends[0].write(p.now, Requests, 100)
	}
	p.send(0)
	slices.Reverse(p.inTransit[1])
	p.deliver(1)
	p.settle()
	if p.ends[1].c.cfg.Counters.OutOfOrder == 0 || len(p.ends[1].pool.out) > 0 {
		t.Errorf("%+v, and %d are out", *p.ends[1].c.cfg.Counters, len(p.ends[1].pool.out))
	}
}

// Buffers of outstanding frames are freed when the peer turns out to be silent.
func TestMemory_ResetKeepsNothing(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	for a.write(p.now, Requests, 100) {
	}
	for range 100 * time.Second / maxRTO {
		if p.send(0); a.failures > 0 {
			break
		}
		p.inTransit[1] = nil
		p.now = p.now.Add(maxRTO)
		a.advance(p.now)
		a.check()
	}
	if p.ok(); a.failures != 1 || len(a.pool.out) > 0 {
		t.Errorf("%d failures, %d buffers are out", a.failures, len(a.pool.out))
	}
}

// Frames behind a gap that a dead peer has left are kept until this end gives up or the peer has
// restarted.
func TestMemory_GapOfADeadPeer(t *testing.T) {
	for _, anew := range []bool{false, true} {
		p := newPair(t, 120).open()
		for p.ends[0].write(p.now, Requests, 100) {
		}
		p.send(0)
		p.inTransit[1] = p.inTransit[1][1:]
		p.deliver(1)
		b := p.ends[1]
		if n := len(b.pool.out); n == 0 || n >= ReorderWindow {
			t.Errorf("%d buffers are out", n)
		}
		p.inTransit[0], p.inTransit[1] = nil, nil
		if anew {
			p.restart(0, 9)
			p.deliverOne(0)
		} else {
			p.cut(1)
		}
		if len(b.pool.out) > 0 || b.restarts+b.failures != 1 {
			t.Errorf("anew %t: %d buffers are out", anew, len(b.pool.out))
		}
	}
}

// What is allocated one after the other lies side by side, and what has come back is allocated
// again: as a whole block, or where none of the present one is in use, from its first byte on.
func TestMemory_SideBySide(t *testing.T) {
	const size = 2 * cacheLine
	m := NewMemory(size)
	var all []Buffer
	for range 3 * blockFrames {
		all = append(all, m.Alloc(size))
	}
	for i, b := range all[1:] {
		beside := addressOf(b) == addressOf(all[i])+size
		if !beside && (i+1)%blockFrames != 0 || len(b.Bytes) != size || cap(b.Bytes) != size {
			t.Errorf("buffer %d of %d: beside the one before: %v; length %d, capacity %d", i+1, len(all), beside, len(b.Bytes), cap(b.Bytes))
		}
	}
	first := all[0]
	for _, b := range all[1:] {
		m.Free(b)
	}
	for i := range blockFrames { // of the present block, which has begun anew
		if b := m.Alloc(size); addressOf(b) != addressOf(all[2*blockFrames+i]) {
			t.Errorf("buffer %d is another one", i)
		}
	}
	if b := m.Alloc(size); addressOf(b) != addressOf(all[blockFrames]) {
		t.Error("the block that has come back whole is not the next; one of the first one's buffers is in use")
	}
	m.Free(first)
	if len(m.spare) != 1 {
		t.Errorf("%d spare blocks, want the first", len(m.spare))
	}
}

func addressOf(b Buffer) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes))) }

// What is kept for later is bounded: the buffers of both lanes' windows, no fewer, as else those of a
// connection that uses both are allocated again and again.
func TestMemory_IsBounded(t *testing.T) {
	const windows = Lanes * Window
	for name, cfg := range map[string]Config{
		"side by side": {Headroom: 14, FrameSize: 1450, SendSize: 1450, Train: 44}, "at cache lines": {Headroom: 98, FrameSize: 1480, SendSize: 1480},
	} {
		m, size := NewMemory(cfg.Headroom+cfg.FrameSize), cfg.bufferLen(cfg.FrameSize-HeaderLen)
		all := make([]Buffer, 2*windows)
		fill := func(n int) {
			for i := range n {
				all[i] = m.Alloc(size)
			}
			for _, b := range all[:n] {
				m.Free(b)
			}
		}
		fill(2 * windows)
		if n := len(m.spare) * blockFrames; n != windows {
			t.Errorf("%s: %d buffers are kept, want %d", name, n, windows)
		}
		if n := testing.AllocsPerRun(10, func() { fill(windows) }); n != 0 {
			t.Errorf("%s: %v allocations for what fits the windows", name, n)
		}
	}
}
