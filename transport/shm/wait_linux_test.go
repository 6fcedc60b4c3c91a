package shm

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// The end of a mask ends a Wait for which something came meanwhile.
func TestWait_MaskEnds(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	if n, err := l.Poll(make([]transport.Frame, 1)); n != 0 || err != nil || l.pending() {
		t.Fatal(n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	l.MaskWakeups(true)
	ended := make(chan error, 1)
	go func() { ended <- l.Wait(ctx) }()
	eventually(t, "nobody waits", func() bool { return l.waiters.Load() > 0 })
	for range 1000 {
		runtime.Gosched() // most likely it sleeps after this; it must be right either way
	}
	if n, err := other.Send([]transport.Frame{{Dst: l.MAC(), Payload: []byte("masked")}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	l.MaskWakeups(false)
	if err := <-ended; err != nil {
		t.Errorf("Wait sleeps on: %v", err)
	}
}

// A link hears, whenever its wake-ups are masked and unmasked while a goroutine goes to sleep.
func TestWait_WhileWakeupsAreMasked(t *testing.T) {
	dir := Folder(t)
	var links [2]*Link
	for i := range links {
		l, err := Open("test", Config{Dir: dir, MAC: transport.MAC{2, 0, 0, 0, 0, byte(i)}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		links[i] = l
	}
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	if runtime.GOMAXPROCS(0) == 1 { // 10 ms each, as the runtime's monitor alone looks who is to wake up
		rounds = 50
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const most = 30 * time.Second // fewer rounds will do on a machine that is busy
	begun := time.Now()
	var heard atomic.Int64 // frames
	ended := make(chan error, 1)
	go func() {
		var in [4]transport.Frame
		for {
			if err := links[1].Wait(ctx); err != nil {
				ended <- err
				return
			}
			n, _ := links[1].Poll(in[:])
			heard.Add(int64(n))
		}
	}()
	f := []transport.Frame{{Dst: links[1].MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 50)}}
	for i := 0; i < rounds && time.Since(begun) < most; i++ {
		links[1].MaskWakeups(true)
		for range i % 64 { // the other goroutine goes on meanwhile
			_ = links[1].pending()
		}
		links[1].MaskWakeups(false)
		if n, err := links[0].Send(f); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		sent := time.Now()
		for spins := 0; heard.Load() <= int64(i); spins++ {
			if spins <= 1000 {
				continue
			}
			runtime.Gosched() // it may need this processor
			if time.Since(sent) > Patience {
				t.Fatalf("round %d: a frame is there, and nobody wakes up", i)
			}
		}
	}
	cancel()
	<-ended
}

// A wait that goes on is a sleep of its own: a sender that has woken the link in the one before wakes
// it again. So it is also where another goroutine polls while this one looks.
func TestWait_EachIsASleepOfItsOwn(t *testing.T) {
	l := opened(t, Folder(t), 1)
	ended := make(chan struct{})
	var polls sync.WaitGroup
	polls.Go(func() { // as often as something comes, it is polled
		for {
			select {
			case <-ended:
				return
			default:
				l.left.Store(!l.left.Load())
			}
		}
	})
	defer polls.Wait()
	defer close(ended)
	for i := range 2_000_000 {
		before := l.bell.Asleep()
		if !l.ready(0) && l.bell.Asleep() == before {
			t.Fatalf("round %d: the wait goes on, and it is sleep %d as before", i, before)
		}
	}
}

// Where an eventfd is drained just after a sender has written to it, the link wakes up all the same.
func TestWait_DrainedMeanwhile(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	done := make(chan struct{})
	close(done)
	drained := map[bool]func(){
		true:  l.drainOwn,
		false: func() { drainUntil(done, l.event.copy()) }, // as who was given it, too
	}
	ended := make(chan error, 1)
	for i := range 1000 {
		for l.pending() {
			if _, err := l.Poll(make([]transport.Frame, 4)); err != nil {
				t.Fatal(err)
			}
		}
		before := l.bell.Asleep()
		go func() { ended <- l.Wait(ctx) }()
		for l.bell.Asleep() == before && ctx.Err() == nil {
			runtime.Gosched()
		}
		if n, err := other.Send([]transport.Frame{{Dst: l.MAC(), Payload: []byte("wake up")}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		drained[i%2 == 0]()
		if err := <-ended; err != nil {
			t.Fatalf("Wait sleeps on: %v", err)
		}
	}
}
