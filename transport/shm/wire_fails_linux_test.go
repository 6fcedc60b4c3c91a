package shm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
)

// faulty is a wire that fails, or has no room.
type faulty struct {
	transport.Link
	mu    sync.Mutex
	err   error
	waits error
}

func (f *faulty) fail(send, wait error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.waits = send, wait
}

func (f *faulty) Send(frames []transport.Frame) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	return f.Link.Send(frames)
}

func (f *faulty) Wait(ctx context.Context) error {
	f.mu.Lock()
	err := f.waits
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Link.Wait(ctx)
}

// A wire that has no room refuses what is for it alone. What it refuses reaches nobody, so that a
// second try does not arrive twice.
func TestWire_HasNoRoom(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &faulty{Link: w[0]}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	frames := []transport.Frame{text(b.MAC(), "one"), text(transport.Broadcast, "all"), text(b.MAC(), "two")}
	wire.fail(transport.ErrBusy, nil)
	if n, err := a.Send(frames); n != 1 || !errors.Is(err, transport.ErrBusy) {
		t.Fatalf("%d, %v; want 1, ErrBusy", n, err)
	}
	wire.fail(nil, nil)
	if n, err := a.Send(frames[1:]); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if got, want := take(t, b, 3), []string{"one", "all", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := a.Counters(); c.TxBusy != 1 || c.TxRefused != 0 || c.TxFrames != 3 {
		t.Errorf("%+v", c)
	}
}

// While its wire is down, or gone and not known to be, multicasts reach the stations of this host, in
// their place among others; what is for the wire alone is refused, and a multicast is, while there
// are no such stations.
func TestWire_IsDownAndMulticastsGoOn(t *testing.T) {
	for _, failure := range []error{transport.ErrInterfaceDown, transport.ErrNoInterface} {
		t.Run(failure.Error(), func(t *testing.T) {
			w, dir := wires(t, 3), shm.Folder(t)
			wire := &faulty{Link: w[0]}
			a := open(t, shm.Config{Dir: dir, Wire: wire})
			wire.fail(fmt.Errorf("ring eth0: send: %w", failure), nil)
			all := text(transport.Broadcast, "all")
			if n, err := a.Send([]transport.Frame{all}); n != 0 || !errors.Is(err, failure) {
				t.Errorf("with no station here: %d, %v", n, err)
			}
			b := open(t, shm.Config{Dir: dir, Wire: w[1]})
			frames := []transport.Frame{text(b.MAC(), "one"), all, text(b.MAC(), "two"), all, all, text(w[2].MAC(), "far")}
			if n, err := a.Send(frames); n != 5 || !errors.Is(err, failure) {
				t.Errorf("%d, %v; want 5, %v", n, err, failure)
			}
			if got, want := take(t, b, 5), []string{"one", "all", "two", "all", "all"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if c := a.Counters(); c.TxFrames != 5 || c.TxRefused != 2 {
				t.Errorf("%+v, want 5 frames, and 2 refused", c)
			}
			wire.fail(nil, nil)
			if n, err := a.Send(frames[3:]); n != 3 || err != nil || w[0].Counters().TxFrames != 3 {
				t.Errorf("up again: %d, %v, and %d by the wire; want 3", n, err, w[0].Counters().TxFrames)
			}
		})
	}
}

// While its wire fails, Wait says why, if no station is reached through memory; otherwise the link
// works on.
func TestWire_FailsToWait(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &faulty{Link: w[0]}
	wire.fail(nil, transport.ErrInterfaceDown)
	a := open(t, shm.Config{Dir: dir, Wire: wire})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	for err == nil {
		err = a.Wait(ctx)
	}
	if !errors.Is(err, transport.ErrInterfaceDown) {
		t.Errorf("%v, want the wire's error", err)
	}
	b := open(t, shm.Config{Dir: dir, Wire: w[1]})
	exchange(t, b, a)
	wire.fail(nil, nil)
	if _, err := w[1].Send([]transport.Frame{text(a.MAC(), "by the wire")}); err != nil {
		t.Fatal(err)
	}
	if got := take(t, a, 1); got[0] != "by " {
		t.Errorf("%q", got)
	}
}

// Once its wire is well again, Wait says no more that it was not.
func TestWire_IsWellAgain(t *testing.T) {
	w := wires(t, 2)
	wire := &faulty{Link: w[0]}
	wire.fail(nil, transport.ErrInterfaceDown)
	a := open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	for err == nil {
		err = a.Wait(ctx)
	}
	wire.fail(nil, nil)
	if _, err := w[1].Send([]transport.Frame{text(a.MAC(), "well")}); err != nil {
		t.Fatal(err)
	}
	err = a.Wait(ctx)
	for errors.Is(err, transport.ErrInterfaceDown) && ctx.Err() == nil { // until it was tried again
		if _, err := a.Poll(nil); err != nil {
			t.Fatal(err)
		}
		err = a.Wait(ctx)
	}
	if err != nil {
		t.Errorf("Wait: %v", err)
	}
}

// It says no more that its wire is down once that is up again, also where nothing comes by it and
// nobody polls.
func TestWire_IsWellAgainAndSilent(t *testing.T) {
	wire := &faulty{Link: wires(t, 1)[0]}
	wire.fail(nil, transport.ErrInterfaceDown)
	a := open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := error(nil)
	for err == nil {
		err = a.Wait(ctx)
	}
	wire.fail(nil, nil)
	for errors.Is(err, transport.ErrInterfaceDown) && ctx.Err() == nil { // until it was tried again
		runtime.Gosched()
		err = a.Wait(ctx)
	}
	if err != nil {
		t.Errorf("Wait: %v", err)
	}
}

// A link that reaches nobody any more, as its wire is gone, says so to who waits: already, or later.
func TestWire_IsGoneAndNobodyIsHere(t *testing.T) {
	for name, early := range map[string]bool{"a Wait in progress": true, "a Wait that comes later": false} {
		t.Run(name, func(t *testing.T) {
			wire := wires(t, 1)[0]
			a := open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			ended := make(chan error, 1)
			if early {
				go func() { ended <- a.Wait(ctx) }()
				for range 1000 {
					runtime.Gosched() // most likely it sleeps after this; it must be right either way
				}
			}
			if err := wire.Close(); err != nil {
				t.Fatal(err)
			}
			if !early {
				for range 1000 {
					runtime.Gosched() // most likely the link knows after this; as above
				}
				ended <- a.Wait(ctx)
			}
			if err := <-ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Wait: %v, want ErrClosed, as the wire is", err)
			}
		})
	}
}

// A wire that is gone for good does not end what goes through memory.
func TestWire_IsGone(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	if err := w[0].Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Send([]transport.Frame{text(a.MAC(), "through memory")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	var got [1]transport.Frame
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := a.Wait(ctx); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if n, _ := a.Poll(got[:]); n != 1 || string(got[0].Payload) != "through memory" {
		t.Errorf("%d frames", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); !errors.Is(err, transport.ErrClosed); err = a.Wait(ctx) { // nothing can come any more
		if ctx.Err() != nil {
			t.Fatal("Wait does not say that the wire is closed")
		}
		if n, _ := a.Poll(got[:]); n != 0 {
			t.Fatalf("%d frames more", n)
		}
	}
}

// While a link's wire is down or gone, Wait does not say so before the program has what the stations
// of this host have sent before they went.
func TestWire_FailsAndFramesAreLeft(t *testing.T) {
	for _, failure := range []error{transport.ErrInterfaceDown, transport.ErrNoInterface} {
		t.Run(failure.Error(), func(t *testing.T) {
			w, dir := wires(t, 2), shm.Folder(t)
			wire := &faulty{Link: w[0]}
			wire.fail(nil, failure)
			a := open(t, shm.Config{Dir: dir, Wire: wire})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var err error
			for err == nil {
				err = a.Wait(ctx)
			}
			b := open(t, shm.Config{Dir: dir, Wire: w[1]})
			if n, err := b.Send([]transport.Frame{text(a.MAC(), "one"), text(a.MAC(), "two")}); n != 2 || err != nil {
				t.Fatal(n, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(patience); len(a.Stations()) > 0 && time.Now().Before(end); {
				runtime.Gosched()
			}
			got := make([]transport.Frame, 1)
			for _, want := range []string{"one", "two"} {
				for n := 0; n == 0; n, _ = a.Poll(got) { // the link may just look whether there is something
					if err := a.Wait(ctx); err != nil {
						t.Fatalf("Wait, with %q left: %v", want, err)
					}
				}
				if string(got[0].Payload) != want {
					t.Errorf("%q, want %q", got[0].Payload, want)
				}
			}
			for err = nil; err == nil; err = a.Wait(ctx) { // until the memory is given back
				_, _ = a.Poll(got) // there is nothing more
			}
			if !errors.Is(err, failure) {
				t.Errorf("Wait, with nothing left: %v, want %v", err, failure)
			}
		})
	}
}

// Once a wire is gone for good, multicasts reach the stations of this host; while there are none, Send
// says what has become of the wire.
func TestWire_IsGoneAndMulticastsGoOn(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	exchange(t, a, b)
	if err := w[0].Close(); err != nil {
		t.Fatal(err)
	}
	frames := []transport.Frame{text(b.MAC(), "one"), text(transport.Broadcast, "all"), text(b.MAC(), "two")}
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		n, err := a.Send(frames)
		frames = frames[n:]
		if len(frames) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d frames left: %v", len(frames), err)
		}
	}
	if got, want := take(t, b, 3), []string{"one", "all", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); len(a.Stations()) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	if n, err := a.Send([]transport.Frame{text(transport.Broadcast, "all")}); n != 0 || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("with no station here: %d, %v", n, err)
	}
}

// A wire that is gone is no error of Poll's while a station is reached through memory; then it is.
func TestWire_IsGoneAndPollGoesOn(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	if err := w[0].Close(); err != nil {
		t.Fatal(err)
	}
	exchange(t, b, a)
	if _, err := a.Poll(make([]transport.Frame, 1)); err != nil {
		t.Errorf("Poll: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(patience)
	for err := error(nil); !errors.Is(err, transport.ErrClosed); _, err = a.Poll(make([]transport.Frame, 1)) {
		if time.Now().After(end) {
			t.Fatal("Poll does not say that the wire is closed")
		}
		runtime.Gosched()
	}
}

// Once a wire is gone for good, groups are joined and left without it.
func TestWire_IsGoneAndGroupsAreJoined(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	a := open(t, shm.Config{Dir: dir, Wire: w[0]})
	before, after := transport.MAC{3, 0, 0, 0, 0, 1}, transport.MAC{3, 0, 0, 0, 0, 2}
	if err := a.Join(before); err != nil {
		t.Fatal(err)
	}
	if err := w[0].Close(); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; { // until the link knows
		err = a.Wait(t.Context())
	}
	if err := a.Join(after); err != nil {
		t.Errorf("Join: %v", err)
	}
	if err := a.Leave(before); err != nil {
		t.Errorf("Leave: %v", err)
	}
	b := open(t, shm.Config{Dir: dir, Wire: w[1]})
	frames := []transport.Frame{text(before, "left"), text(after, "joined")}
	if n, err := b.Send(frames); n != len(frames) || err != nil {
		t.Fatal(n, err)
	}
	var got [2]transport.Frame
	n, end := 0, time.Now().Add(patience)
	for ; n == 0 && time.Now().Before(end); n, _ = a.Poll(got[:]) {
		runtime.Gosched()
	}
	if n != 1 || string(got[0].Payload) != "joined" {
		t.Errorf("%d frames, want the one for the group that was joined", n)
	}
}

// hopeless is a wire whose Wait fails at once, and notes when.
type hopeless struct {
	transport.Link
	waits chan time.Time
}

func (h *hopeless) Wait(ctx context.Context) error {
	select {
	case h.waits <- time.Now():
	case <-ctx.Done():
	}
	return transport.ErrInterfaceDown
}

// A wire that fails to wait is left alone for 10 ms each time, and takes no processor meanwhile.
func TestWire_IsLeftAlone(t *testing.T) {
	wire := &hopeless{Link: wires(t, 1)[0], waits: make(chan time.Time, 100)}
	open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
	last := <-wire.waits
	for range 3 {
		now := <-wire.waits
		if pause := now.Sub(last); pause < 10*time.Millisecond {
			t.Errorf("tried again after %v", pause)
		}
		last = now
	}
}

// While one station is reached through memory, a wire that fails to wait ends no wait of the link's.
func TestWire_FailsBesideOneStation(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &hopeless{Link: w[0], waits: make(chan time.Time, 1000)}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	exchange(t, b, a)
	for range 5 {
		<-wire.waits
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := a.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want none of the wire's", err)
		}
		cancel()
		if _, err := a.Poll(make([]transport.Frame, 1)); err != nil {
			t.Error(err)
		}
	}
}
