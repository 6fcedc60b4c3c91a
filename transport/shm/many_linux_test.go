package shm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
)

// Thirty-two stations: each reaches each, all get a broadcast.
func TestMany(t *testing.T) {
	n := 32
	if testing.Short() {
		n = 9
	}
	dir := shm.Folder(t)
	links := make([]*shm.Link, n)
	var opening sync.WaitGroup
	for k := range links {
		opening.Go(func() {
			l, err := shm.Open("test", shm.Config{Dir: dir, MAC: mac(k + 1)})
			if err != nil {
				t.Error(err)
				return
			}
			links[k] = l
		})
	}
	opening.Wait()
	for _, l := range links {
		if l == nil {
			t.FailNow()
		}
		t.Cleanup(func() { _ = l.Close() })
		until(t, l, none, func() bool { return len(l.Stations()) == n-1 })
	}
	for k, l := range links {
		var frames []transport.Frame
		for other := range links {
			if other != k {
				frames = append(frames, transport.Frame{Dst: mac(other + 1), Payload: binary.BigEndian.AppendUint32(nil, uint32(k))})
			}
		}
		frames = append(frames, transport.Frame{Dst: transport.Broadcast, Payload: []byte{0xff, 0xff, 0xff, byte(k)}})
		if sent, err := l.Send(frames); sent != n || err != nil {
			t.Fatal(sent, err)
		}
	}
	for k, l := range links {
		from := map[transport.MAC]int{}
		until(t, l, func(f *transport.Frame) { from[f.Src]++ }, func() bool {
			total := 0
			for _, c := range from {
				total += c
			}
			return total >= 2*(n-1)
		})
		for other := range links {
			if other != k && from[mac(other+1)] != 2 {
				t.Errorf("station %d has %d frames from %d, want 2", k, from[mac(other+1)], other)
			}
		}
	}
}

// A station that sends without end leaves the others their turn.
func TestPoll_TakesTurns(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	flood, one, two := open(t, shm.Config{Dir: dir, MAC: mac(2)}), open(t, shm.Config{Dir: dir, MAC: mac(3)}), open(t, shm.Config{Dir: dir, MAC: mac(4)})
	out := make([]transport.Frame, 16)
	for i := range out {
		out[i] = transport.Frame{Dst: mac(1), Payload: make([]byte, 64)}
	}
	in := make([]transport.Frame, 8)
	for round := range 50 {
		if _, err := flood.Send(out); err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
		for _, other := range []*shm.Link{one, two} {
			if _, err := other.Send(out[:1]); err != nil {
				t.Fatal(err)
			}
		}
		from := map[transport.MAC]int{}
		for range 3 {
			n, err := l.Poll(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range in[:n] {
				from[f.Src]++
			}
		}
		if from[mac(3)] != 1 || from[mac(4)] != 1 {
			t.Fatalf("round %d: three polls bring %v", round, from)
		}
	}
}

// A receiver whose ring is full pushes back, and loses multicasts alone, which it counts. Its sender
// is woken when there is room.
func TestSend_RingIsFull(t *testing.T) {
	dir := shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, MAC: mac(1)}), open(t, shm.Config{Dir: dir, MAC: mac(2)})
	f := []transport.Frame{{Dst: mac(2), Payload: make([]byte, 9000)}}
	sent := 0
	for ; ; sent++ {
		if _, err := a.Send(f); errors.Is(err, transport.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent < 8 || a.Counters().TxBusy != 1 {
		t.Errorf("%d frames fit, and %+v", sent, a.Counters())
	}
	for range 3 {
		if n, err := a.Send([]transport.Frame{{Dst: transport.Broadcast, Payload: make([]byte, 9000)}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if c := b.Counters(); c.RxDropped != 3 {
		t.Errorf("%+v, want 3 dropped", c)
	}
	woken := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		woken <- a.Wait(ctx)
	}()
	came := 0
	until(t, b, func(*transport.Frame) { came++ }, func() bool { return came == sent })
	if _, err := b.Poll(make([]transport.Frame, 1)); err != nil { // gives the last one's memory back
		t.Fatal(err)
	}
	if err := <-woken; err != nil {
		t.Errorf("the sender's Wait: %v", err)
	}
	if n, err := a.Send(f); n != 1 || err != nil {
		t.Errorf("after that: %d, %v", n, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if c := b.Counters(); c.RxDropped != 3 {
		t.Errorf("after Close: %+v, want 3 dropped", c)
	}
}

// Frames that their sender had sent before it closed arrive.
func TestPoll_FramesOfAStationThatClosed(t *testing.T) {
	dir := shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, MAC: mac(1)}), open(t, shm.Config{Dir: dir, MAC: mac(2)})
	out := make([]transport.Frame, 100)
	for i := range out {
		out[i] = transport.Frame{Dst: mac(2), Payload: []byte{byte(i)}}
	}
	if n, err := a.Send(out); n != len(out) || err != nil {
		t.Fatal(n, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	next := 0
	check := func(f *transport.Frame) {
		if f.Payload[0] != byte(next) {
			t.Fatalf("frame %d, want %d", f.Payload[0], next)
		}
		next++
	}
	until(t, b, check, alone(b))
	until(t, b, check, func() bool { return next == len(out) })
}
