package fabric

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// fill sends frames 0, 1, ... to dst until its queue is full.
func fill(t *testing.T, from, to *Link, frames int) {
	t.Helper()
	for i := range uint32(frames) {
		send(t, from, numbered(to.MAC(), i))
	}
}

// A broadcast for which one of three receivers has no room reaches none, and is counted nowhere.
func TestBackPressure_AllOrNothing(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 8})
	left, right, hub := f.AddSwitch("left"), f.AddSwitch("right"), f.AddHub("hub")
	connect(t, left, right, Port{})
	connect(t, right, hub, Port{})
	a, near, far, slow := attach(t, left, Station{}), attach(t, left, Station{}), attach(t, right, Station{}), attach(t, hub, Station{})
	fill(t, a, slow, 8)
	before := [2]SwitchCounters{left.Counters(), right.Counters()}

	wantBusy(t, "broadcast", a, numbered(transport.Broadcast, 100))
	wantBusy(t, "unicast", a, numbered(slow.MAC(), 101))
	if after := [2]SwitchCounters{left.Counters(), right.Counters()}; after != before {
		t.Errorf("the switches counted frames that were not sent: %+v, before %+v", after, before)
	}
	send(t, a, numbered(near.MAC(), 102)) // sending to others goes on
	wantNumbers(t, "near", near, 102)
	wantNumbers(t, "far", far)
	wantNumbers(t, "slow", slow, 0, 1, 2, 3, 4, 5, 6, 7)

	send(t, a, numbered(transport.Broadcast, 103))
	for _, l := range []*Link{near, far, slow} {
		wantNumbers(t, l.Name(), l, 103)
	}
	c := a.Counters()
	if c.TxFrames != 10 || c.TxBusy != 2 || slow.Counters().RxDropped != 0 {
		t.Errorf("sender %+v, slow receiver %+v: want 10 frames sent, 2 times busy, none dropped", c, slow.Counters())
	}
}

func TestBackPressure_CountsTheFramesBeforeInABatch(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 4})
	links, err := f.AddSwitch("").Links(2)
	if err != nil {
		t.Fatal(err)
	}
	var batch []transport.Frame
	for i := range uint32(6) {
		batch = append(batch, numbered(links[1].MAC(), i))
	}
	if n, err := links[0].Send(batch); n != 4 || !errors.Is(err, transport.ErrBusy) {
		t.Errorf("6 frames into room for 4: n=%d, %v", n, err)
	}
	wantNumbers(t, "the receiver", links[1], 0, 1, 2, 3)
	send(t, links[0], batch[4:]...)
	wantNumbers(t, "the receiver", links[1], 4, 5)
}

func TestDropWhenFull_LosesAtThatReceiverAlone(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 4, DropWhenFull: true})
	links, err := f.AddSwitch("").Links(3)
	if err != nil {
		t.Fatal(err)
	}
	a, slow, quick := links[0], links[1], links[2]
	fill(t, a, slow, 4)
	send(t, a, numbered(transport.Broadcast, 100), numbered(slow.MAC(), 101))
	wantNumbers(t, "quick", quick, 100)
	wantNumbers(t, "slow", slow, 0, 1, 2, 3)
	if c := slow.Counters(); c.RxDropped != 2 || c.RxFrames != 4 {
		t.Errorf("slow: %+v, want 2 dropped", c)
	}
	send(t, a, numbered(slow.MAC(), 102))
	wantNumbers(t, "slow, emptied", slow, 102)
}

// A receiver with all its frames handed out, asleep in Wait, must still be reachable: else it would
// sleep, and its senders be busy, for ever.
func TestQueue_SleeperWithAllHandedOutHasRoom(t *testing.T) {
	for _, size := range []int{2, 4, 64} {
		f := newFabric(t, Config{QueueFrames: size})
		links, err := f.AddSwitch("").Links(2)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, links[0], links[1], size)
		buf := make([]transport.Frame, size)
		for got := 0; got < size; { // the last Poll's frames stay handed out
			n, err := links[1].Poll(buf)
			if n == 0 || n > (size+1)/2 || err != nil {
				t.Fatalf("queue of %d: Poll returned %d, %v; want at most half at a time", size, n, err)
			}
			got += n
		}
		send(t, links[0], numbered(links[1].MAC(), 1))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := links[1].Wait(ctx); err != nil {
			t.Errorf("queue of %d: Wait: %v", size, err)
		}
		cancel()
	}
}

// The queue against a slice: 100,000 random operations.
func TestQueue_AgreesWithSlice(t *testing.T) {
	const size, seed = 16, 3
	rng := rand.New(rand.NewPCG(seed, 0))
	var q queue
	q.init(size, 128)
	var waiting, handedOut []uint32
	buf := make([]transport.Frame, 2*size)
	for op := range uint32(100_000) {
		if rng.IntN(8) > 0 { // mostly full
			room := q.reserve()
			if want := len(waiting)+len(handedOut) < size; room != want {
				t.Fatalf("seed %d, operation %d: room %t, want %t", seed, op, room, want)
			}
			if room {
				f := numbered(transport.Broadcast, op)
				q.push(&f)
				waiting = append(waiting, op)
			}
			continue
		}
		for i, n := range handedOut {
			if numberOf(buf[i]) != n {
				t.Fatalf("seed %d, operation %d: a view changed before the next Poll", seed, op)
			}
		}
		n := q.poll(buf[:rng.IntN(len(buf))])
		for i := range n {
			if numberOf(buf[i]) != waiting[i] {
				t.Fatalf("seed %d, operation %d: frame %d is %d, want %d", seed, op, i, numberOf(buf[i]), waiting[i])
			}
		}
		handedOut, waiting = slices.Clone(waiting[:n]), waiting[n:]
		if q.waiting() != (len(waiting) > 0) {
			t.Fatalf("seed %d, operation %d: waiting %t with %d there", seed, op, q.waiting(), len(waiting))
		}
	}
}

// A short frame in a slot that had a long one is padded with zeros, and a view ends with its payload.
func TestQueue_ShortAfterLong(t *testing.T) {
	var q queue
	q.init(2, 64)
	long, short := numbered(transport.Broadcast, ^uint32(0)), numbered(transport.Broadcast, 5)
	long.Payload = bytes.Repeat([]byte{0xee}, 64)
	buf := make([]transport.Frame, 1)
	for range 2 { // both slots
		q.reserve()
		q.push(&long)
		q.poll(buf)
	}
	q.poll(nil)
	q.reserve()
	q.push(&short)
	q.poll(buf)
	got := buf[0].Payload
	if want := append(short.Payload, make([]byte, minPayload-4)...); !bytes.Equal(got, want) {
		t.Errorf("payload %x, want %x", got, want)
	}
	if cap(got) != len(got) {
		t.Errorf("the view has room for %d bytes behind its %d: append would write into other frames", cap(got)-len(got), len(got))
	}
}

// All stations send to each other, to all and to a group, through two switches and a hub, with tiny
// queues, and poll and sleep. Each frame arrives once at each of its receivers, in its sender's order.
func TestFabric_NoFrameIsLostAmongManyGoroutines(t *testing.T) {
	const perSender = 2000
	f := newFabric(t, Config{QueueFrames: 4})
	left, right, hub := f.AddSwitch(""), f.AddSwitch(""), f.AddHub("")
	connect(t, left, right, Port{})
	connect(t, right, hub, Port{})
	var links []*Link
	for _, d := range []Device{left, left, right, hub, hub} {
		links = append(links, attach(t, d, Station{}))
	}
	group := transport.MAC{3}
	if err := links[4].Join(group); err != nil {
		t.Fatal(err)
	}
	dst := func(i int) transport.MAC {
		switch k := i % 7; {
		case k < len(links):
			return links[k].MAC()
		case k == 5:
			return transport.Broadcast
		default:
			return group
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var senders, receivers sync.WaitGroup
	for me, l := range links {
		senders.Go(func() {
			for i := range perSender {
				for {
					_, err := l.Send([]transport.Frame{numbered(dst(i), uint32(i))})
					if err == nil {
						break
					}
					if !errors.Is(err, transport.ErrBusy) || ctx.Err() != nil {
						t.Errorf("Send: %v", err)
						return
					}
					runtime.Gosched()
				}
			}
		})
		receivers.Go(func() {
			want := 0 // frames of all the others for this station
			for i := range perSender {
				if d := dst(i); d == l.MAC() || d == transport.Broadcast || d == group && me == 4 {
					want += len(links) - 1
				}
			}
			last := make(map[transport.MAC]int)
			buf := make([]transport.Frame, 3)
			for got := 0; got < want; {
				n, err := l.Poll(buf)
				if n == 0 {
					if err = l.Wait(ctx); err == nil {
						continue
					}
				}
				if err != nil {
					t.Errorf("%s has %d of %d frames: %v", l.Name(), got, want, err)
					return
				}
				for _, fr := range buf[:n] {
					i := int(numberOf(fr))
					if seen, ok := last[fr.Src]; ok && i <= seen || dst(i) != fr.Dst {
						t.Errorf("%s: frame %d of %v for %v after %d", l.Name(), i, fr.Src, fr.Dst, seen)
					}
					last[fr.Src] = i
				}
				got += n
			}
		})
	}
	senders.Wait()
	receivers.Wait()
	for _, l := range links {
		wantNumbers(t, "left over at "+l.Name(), l)
	}
}
