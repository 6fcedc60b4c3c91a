package shm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// empty makes room in an eventfd.
func empty(fd int) {
	var b [8]byte
	_ = unix.SetNonblock(fd, true)
	_, _ = unix.Read(fd, b[:]) // it may be empty
}

// fill leaves no room in an eventfd, until the test ends. If it blocks then, so does who writes to it.
func fill(t *testing.T, fd int, blocks bool) {
	t.Helper()
	empty(fd)
	t.Cleanup(func() { empty(fd) })
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], math.MaxUint64-1)
	if _, err := unix.Write(fd, b[:]); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, !blocks); err != nil {
		t.Fatal(err)
	}
}

// A stranger that has filled the eventfd of a link, and has it block, keeps others from waking that
// link, and from going on, only as long as it is there.
func TestStranger_FillsTheEventfd(t *testing.T) {
	for name, blocks := range map[string]bool{"it blocks": true, "it does not block": false} {
		t.Run(name, func(t *testing.T) {
			dir := shm.Folder(t)
			l, other := open(t, shm.Config{Dir: dir, MAC: mac(1)}), open(t, shm.Config{Dir: dir, MAC: mac(2)})
			s := meet(t, dir, l, nil)
			s.hear()
			until(t, other, none, func() bool { return len(other.Stations()) == 1 })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			heard := make(chan byte, 100)
			go func() {
				frames := make([]transport.Frame, 4)
				for l.Wait(ctx) == nil {
					n, _ := l.Poll(frames)
					for _, f := range frames[:n] {
						heard <- f.Payload[0]
					}
				}
			}()
			bell := records.NewBell(s.theirs)
			asleep := func() {
				for bell.Asleep() == 0 && ctx.Err() == nil {
					runtime.Gosched()
				}
				for range 100 {
					runtime.Gosched() // most likely it sleeps after this; it must be right either way
				}
			}
			asleep()
			fill(t, s.wakes, blocks)
			const messages = 20
			sent := make(chan error, 1)
			begun := make(chan struct{}, messages)
			gone := make(chan struct{})
			go func() {
				var err error
				for i := 0; i < messages && err == nil; i++ {
					begun <- struct{}{}
					_, err = other.Send([]transport.Frame{{Dst: mac(1), Payload: []byte{byte(i)}}})
					if i == 0 {
						<-gone
					}
					asleep()
				}
				sent <- err
			}()
			<-begun
			for range 100 {
				runtime.Gosched() // most likely it is blocked after this; as above
			}
			_ = s.conn.Close()
			for len(l.Stations()) != 1 && ctx.Err() == nil {
				runtime.Gosched()
			}
			close(gone)
			for i := range messages {
				select {
				case got := <-heard:
					if got != byte(i) {
						t.Fatalf("message %d came in place of %d", got, i)
					}
				case <-ctx.Done():
					t.Fatalf("message %d is there, and nobody wakes up", i)
				}
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}
}

// A stranger whose own eventfd is full, and blocks, holds a Send only as long as it is there.
func TestStranger_HasAFullEventfd(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	s := meet(t, dir, l, nil)
	s.hear()
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	fill(t, s.event, true)
	records.NewBell(s.bell).Sleep()
	sent := make(chan error, 1)
	go func() {
		_, err := l.Send([]transport.Frame{{Dst: mac(66), Payload: []byte("wake up")}})
		sent <- err
	}()
	for len(sent) == 0 && binary.NativeEndian.Uint64(s.bell) == 0 {
		runtime.Gosched() // until it rings
	}
	_ = s.conn.Close()
	select {
	case err := <-sent:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("Send is blocked by a station that has gone")
	}
}

// A station that was admitted after another one of its address, and is lost, does not take that one
// out of the table: a process may be started anew while this one is stopped, and both its connections
// are accepted in any order.
func TestStranger_HasTheAddressOfAnother(t *testing.T) {
	for name, lost := range map[string]int{"the last is lost": 1, "the first is lost": 0} {
		t.Run(name, func(t *testing.T) {
			dir := shm.Folder(t)
			l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
			var both [2]*stranger
			for i := range both {
				both[i] = meet(t, dir, l, nil)
				both[i].hear()
			}
			_ = both[lost].conn.Close()
			reader := records.NewReader(both[1-lost].input)
			var f transport.Frame
			for end := time.Now().Add(patience); reader.Next(&f) != records.Done; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatalf("the other one gets nothing; stations: %v", l.Stations())
				}
				if _, err := l.Send([]transport.Frame{{Dst: mac(66), Payload: []byte("here")}}); err != nil &&
					!errors.Is(err, transport.ErrBusy) { // the ring of the one that is lost is full
					t.Fatal(err)
				}
			}
		})
	}
}

// A stranger that has left, and keeps the eventfd of a link full and blocking, holds neither those
// that the link meets, nor who waits, nor Close.
func TestStranger_KeepsTheEventfd(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	s := meet(t, dir, l, nil)
	s.hear()
	_ = s.conn.Close()
	until(t, l, none, alone(l))
	fill(t, s.wakes, true)
	other := open(t, shm.Config{Dir: dir, MAC: mac(2)})
	if len(l.Stations()) != 1 || len(other.Stations()) != 1 {
		t.Errorf("stations: %v, %v", l.Stations(), other.Stations())
	}
	waited := make(chan error, 1)
	go func() { waited <- l.Wait(t.Context()) }()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Close waits for the stranger")
	}
	if err := <-waited; err != nil && !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
}

// A wait for room in a ring ends when the station goes that reads it, also if that one has cleared
// its bit of the bell, and was never looked at: whatever a wait was for may be sent now.
func TestStranger_LeavesAFullRing(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	s := meet(t, dir, l, nil)
	s.hear()
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	clear(s.theirs[:56]) // set as the station was admitted
	f := []transport.Frame{{Dst: mac(66), Payload: make([]byte, 1400)}}
	for err := error(nil); err != transport.ErrBusy; _, err = l.Send(f) { //nolint:errorlint // the very value
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bell := records.NewBell(s.theirs)
	before := bell.Asleep()
	ended := make(chan error, 1)
	go func() { ended <- l.Wait(ctx) }()
	for (bell.Asleep() == 0 || bell.Asleep() == before) && len(ended) == 0 && ctx.Err() == nil {
		runtime.Gosched()
	}
	_ = s.conn.Close()
	if err := <-ended; err != nil {
		t.Errorf("the wait goes on: %v", err)
	}
	if n, err := l.Send(f); n != 1 || err != nil {
		t.Errorf("after that: %d, %v", n, err)
	}
}

// A stranger that has left, and writes on as the link polls, is forgotten once as much was taken as
// its ring holds.
func TestStranger_WritesOn(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	s := meet(t, dir, l, nil)
	s.hear()
	w, bell := records.NewWriter(s.ring), records.NewBell(s.theirs)
	write := func() {
		for range 2 { // one remains
			w.Put(&transport.Frame{Dst: mac(1), Payload: make([]byte, 1000)}, mac(66))
			w.Commit()
			bell.Ring(s.bit)
		}
	}
	write()
	frames := make([]transport.Frame, 1)
	if n, err := l.Poll(frames); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	_ = s.conn.Close()
	for end := time.Now().Add(patience); len(l.Stations()) > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("its end is not noticed")
		}
	}
	polls, ring := 0, len(s.ring)/1000
	for end := time.Now().Add(patience); shm.HasBits(l) && polls < 3*ring; polls++ {
		write()
		if n, err := l.Poll(frames); err != nil || n == 0 && time.Now().After(end) {
			t.Fatal(n, err)
		}
	}
	if shm.HasBits(l) {
		t.Errorf("it has its place still after %d polls, where its ring holds %d frames", polls, ring)
	}
}
