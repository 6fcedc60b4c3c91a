package fault_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A frame is overtaken by 1 to ReorderBy others, and none is lost.
func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, fault.Config{Reorder: 0.1, ReorderBy: 2})
		got := exchange(t, a, b, rounds)
		time.Sleep(fault.ReorderTimeout) // virtual: the last one may not be overtaken
		got = append(got, poll(t, b, make([]transport.Frame, 4))...)
		c := b.Counts()
		near(t, "reordered", c.Reordered, 0.1)
		if len(got) != rounds {
			t.Fatalf("%d frames", len(got))
		}
		moved := uint64(0)
		for at, p := range got {
			if number(p) < at {
				moved++
			}
			if late := at - number(p); late > 6 || late < -6 {
				t.Errorf("frame %d came as number %d", number(p), at)
			}
		}
		if moved < c.Reordered*8/10 || moved > c.Reordered {
			t.Errorf("%d came late, %d counted", moved, c.Reordered)
		}
	})
}

// Altered frames keep their place in a batch.
func TestAlteredFramesKeepTheirOrder(t *testing.T) {
	a, b := pair(t, fault.Config{Loss: 0.2, Corrupt: 0.3})
	const batch = 64
	frames := make([]transport.Frame, batch)
	for i := range frames {
		// The number stands in every byte: a flipped bit does not change the median.
		frames[i] = transport.Frame{Dst: b.MAC(), EtherType: 0x88b5, Payload: bytes.Repeat([]byte{byte(i)}, payloadLen)}
	}
	if n, err := a.Send(frames); n != batch || err != nil {
		t.Fatal(n, err)
	}
	last := -1
	for _, p := range poll(t, b, make([]transport.Frame, batch)) {
		slices.Sort(p)
		if p[payloadLen/2] <= byte(last) && last >= 0 {
			t.Errorf("frame %d came behind frame %d", p[payloadLen/2], last)
		}
		last = int(p[payloadLen/2])
	}
	if c := b.Counts(); c.Corrupted == 0 || c.Lost == 0 || c.Delivered+c.Lost != batch {
		t.Errorf("%+v", c)
	}
}

// Frames with different delays come in the order of their due times.
func TestDelayedFramesComeInOrderOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, fault.Config{Delay: 1, DelayMin: time.Second, DelayMax: time.Minute})
		const frames = 200
		exchange(t, a, b, frames)
		in, start := make([]transport.Frame, frames), time.Now()
		var oneByOne []int
		for len(oneByOne) < frames {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, p := range poll(t, b, in) {
				oneByOne = append(oneByOne, number(p))
			}
		}
		if took := time.Since(start); took < 50*time.Second || took > time.Minute {
			t.Errorf("the last came after %v, want nearly a minute", took)
		}
		// The same again, all due at the time of one Poll.
		a, b = pair(t, fault.Config{Delay: 1, DelayMin: time.Second, DelayMax: time.Minute})
		exchange(t, a, b, frames)
		time.Sleep(time.Minute) // virtual
		var atOnce []int
		for _, p := range poll(t, b, in) {
			atOnce = append(atOnce, number(p))
		}
		if slices.IsSorted(oneByOne) || !slices.Equal(oneByOne, atOnce) {
			t.Errorf("one by one\n%v\nat once\n%v", oneByOne, atOnce)
		}
	})
}

// The longest delay there is does not wrap round.
func TestDelayForEver(t *testing.T) {
	a, b := pair(t, fault.Config{Delay: 1, DelayMax: math.MaxInt64})
	if got := exchange(t, a, b, 10); len(got) != 0 {
		t.Errorf("%d frames came", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
}

// The delay queue is bounded.
func TestDelayQueueIsBounded(t *testing.T) {
	a, b := pair(t, fault.Config{Delay: 1, DelayMin: time.Hour, DelayMax: time.Hour})
	exchange(t, a, b, fault.MaxDelayed+10)
	if c := b.Counts(); c.Overflowed != 10 {
		t.Errorf("%+v", c)
	}
}

// Delayed frames are copies: the inner link may use its memory again.
func TestDelayedFramesAreCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marked := func(f *transport.Frame) bool { return f.Payload[0] == 0xaa }
		a, b := pair(t, fault.Config{Delay: 1, DelayMin: time.Second, DelayMax: time.Second, Match: marked})
		want := bytes.Repeat([]byte{0xaa}, payloadLen)
		if _, err := a.Send([]transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5, Payload: want}}); err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, a, b, 10*rounds); len(got) != 10*rounds {
			t.Errorf("%d frames passed", len(got))
		}
		time.Sleep(time.Second) // virtual
		if got := poll(t, b, make([]transport.Frame, 4)); len(got) != 1 || !bytes.Equal(got[0], want) {
			t.Errorf("delayed, and came as %x", got)
		}
	})
}

// A closed link hands out nothing, not even delayed frames that are due.
func TestCloseEmptiesTheDelayQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, fault.Config{Delay: 1, DelayMax: time.Second})
		exchange(t, a, b, 10)
		time.Sleep(time.Second) // virtual: they are due
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Poll(make([]transport.Frame, 4)); n != 0 || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Poll: %d frames, %v", n, err)
		}
		if err := b.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
		if c := b.Counts(); c.Lost != 10 || c.Received+c.Duplicated != c.Lost+c.Cut+c.Overflowed+c.Delivered {
			t.Errorf("%+v; want the 10 that were in the queue among the lost", c)
		}
	})
}
