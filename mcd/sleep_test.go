package mcd

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// sleepy is a link with a Sleep, which counts what ends it and what ends its Waits.
type sleepy struct {
	transport.Link
	mu          sync.Mutex
	turned      *sync.Cond
	here        int // frames that no Poll has handed out
	interrupted bool
	asleep      bool // from Sleep to Awake
	closed      bool
	fails       error
	deliver     func(port PortID) // a frame to a port of this end
	beforePoll  func()            // nil: nothing
	sleeps      int               // how many frames have ended
	waits       int
	awakes      int
}

func (l *sleepy) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.turned.Broadcast()
}

func (l *sleepy) Sleep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep = true
	for l.here == 0 && !l.interrupted && !l.closed { // a failure is Wait's, as a rule
		l.turned.Wait()
	}
	switch {
	case l.closed:
		return transport.ErrClosed
	case l.here > 0:
		l.sleeps++
	}
	l.interrupted = false
	return nil
}

func (l *sleepy) Awake() { l.change(func() { l.asleep = false; l.awakes++ }) }

func (l *sleepy) Interrupt() { l.change(func() { l.interrupted = true }) }

func (l *sleepy) Wait(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.here == 0 || l.asleep) && !l.closed && l.fails == nil {
		l.turned.Wait()
	}
	if l.closed {
		return transport.ErrClosed
	}
	if l.fails == nil {
		l.waits++
	}
	return l.fails
}

func (l *sleepy) Poll(frames []transport.Frame) (int, error) {
	if l.beforePoll != nil {
		l.beforePoll()
	}
	n, err := l.Link.Poll(frames)
	l.change(func() { l.here -= n })
	return n, err
}

func (l *sleepy) Close() error {
	l.change(func() { l.closed = true })
	return l.Link.Close()
}

// bySleepy opens node 0 on such a link, with an open port 1 and a handler's port 2, in a bubble.
func bySleepy(t *testing.T, test func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID))) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		l := &sleepy{Link: x}
		l.turned = sync.NewCond(&l.mu)
		e, err := Open(Config{Spin: -1, Nodes: []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close() }()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.deliver = func(port PortID) {
			b := make([]byte, HeaderLen)
			wire.Seal(b, &wire.Header{Kind: wire.Unicast, From: 1, DstPort: uint8(port)})
			if _, err := y.Send([]transport.Frame{{Dst: e.MAC(0), EtherType: transport.EtherTypeDefault, Payload: b}}); err != nil {
				t.Error(err)
			}
			l.change(func() { l.here++ })
		}
		test(t, e, p, l, func(port PortID) {
			l.deliver(port)
			synctest.Wait()
		})
	})
}

func (l *sleepy) want(t *testing.T, sleeps, waits int, asleep bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sleeps != sleeps || l.waits != waits || l.asleep != asleep {
		t.Errorf("frames have ended %d Sleeps and %d Waits, and somebody sleeps: %v; want %d, %d, %v", l.sleeps, l.waits, l.asleep, sleeps, waits, asleep)
	}
}

// becalm has the next sleep be in the link.
func becalm(e *Endpoint) {
	e.sleeper.calm.Store(calmSleeps)
	e.sleeper.seen.Store(e.turnsBegun())
}

// inRecv waits for a message in a goroutine, which sleeps in the link if nobody does.
func inRecv(ctx context.Context, p *Port) <-chan error {
	becalm(p.e)
	got := make(chan error, 1)
	go func() {
		_, _, err := p.Recv(ctx, make([]byte, 8))
		got <- err
	}()
	synctest.Wait()
	return got
}

// A message wakes the goroutine that waits for it, and not the link's own; with nobody there it is
// the link's own.
func TestSleep_IsEndedByTheFrame(t *testing.T) {
	bySleepy(t, func(t *testing.T, _ *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		for k := range 5 {
			got := inRecv(t.Context(), p)
			arrive(1)
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			l.want(t, k+1, 0, false)
		}
		arrive(1)
		l.want(t, 5, 1, false)
	})
}

// Sleeps are in the link once some in a row have begun with nothing since the last one, and no more
// once frames come meanwhile.
func TestSleep_OfASenderOfAStream(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) {}}); err != nil {
			t.Fatal(err)
		}
		recv := func() {
			got := make(chan error, 1)
			go func() {
				_, _, err := p.Recv(t.Context(), make([]byte, 8))
				got <- err
			}()
			synctest.Wait()
			arrive(1)
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
		arrive(2)
		for calm := range 3 * calmSleeps {
			sleeps := l.sleeps
			recv()
			if inLink := l.sleeps > sleeps; inLink != (calm >= calmSleeps) {
				t.Fatalf("sleep %d: in the link: %v", calm, inLink)
			}
		}
		for range 3 {
			arrive(2)
			sleeps := l.sleeps
			recv()
			if l.sleeps > sleeps {
				t.Error("in the link, where frames have come meanwhile")
			}
		}
	})
}

// A link's goroutine that still has the poll lock when the one that it woke has gone on has not
// come meanwhile.
func TestSleep_IsWokenByATurnThatGoesOn(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		goOn := make(chan struct{})
		if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) { <-goOn }}); err != nil {
			t.Fatal(err)
		}
		l.beforePoll = func() {
			if l.here == 1 { // the message's frame: another one in the same turn, behind it
				l.deliver(2)
			}
		}
		for range calmSleeps + 1 {
			got := make(chan error, 1)
			go func() {
				_, _, err := p.Recv(t.Context(), make([]byte, 8))
				got <- err
			}()
			synctest.Wait()
			if l.asleep {
				return
			}
			arrive(1)
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			goOn <- struct{}{}
			synctest.Wait()
		}
		t.Error("no sleep is in the link")
	})
}

// One who sleeps in the link, where what comes is for others, leaves it, and gets its message all
// the same.
func TestSleep_LeavesTheLinkToOthers(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) {}}); err != nil {
			t.Fatal(err)
		}
		got := inRecv(t.Context(), p)
		for k := range othersFrames {
			l.want(t, k, 0, true)
			arrive(2)
		}
		l.want(t, othersFrames, 0, false)
		arrive(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		l.want(t, othersFrames, 1, false)
	})
}

// Where two goroutines wait, what comes for either is taken by the one that sleeps in the link, and
// by the link's own goroutine once that one has left.
func TestSleep_OfTwo(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		q, err := e.OpenPort(3, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range []PortID{1, 3} {
			sleeps, waits := l.sleeps, l.waits
			inLink, other := inRecv(t.Context(), p), inRecv(t.Context(), q)
			arrive(first)
			l.want(t, sleeps+1, waits, first == 3)
			arrive(4 - first)
			if err := errors.Join(<-inLink, <-other); err != nil {
				t.Fatal(err)
			}
			if first == 3 {
				l.want(t, sleeps+2, waits, false)
			} else {
				l.want(t, sleeps+1, waits+1, false)
			}
		}
	})
}

// What ends a wait otherwise ends one that sleeps in the link: another goroutine that completes it,
// its context, Close. The next one sleeps there again.
func TestSleep_IsEndedByOthers(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		var c Completion
		ended := make(chan error, 1)
		becalm(e)
		go func() { ended <- e.Await(t.Context(), &c) }()
		synctest.Wait()
		l.want(t, 0, 0, true)
		c.Complete(nil)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.want(t, 0, 0, false)
		for range 2 { // the second time it is another context
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			got := inRecv(ctx, p)
			l.want(t, 0, 0, true)
			if err := <-got; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Recv: %v", err)
			}
			cancel()
			l.want(t, 0, 0, false)
		}
		for range 2 { // with the same one
			got := inRecv(t.Context(), p)
			arrive(1)
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		l.want(t, 2, 0, false)
		got := inRecv(t.Context(), p)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("Recv of a closed endpoint: %v", err)
		}
		if e.sleeper.stop != nil || e.sleeper.done != nil {
			t.Error("a context is kept")
		}
	})
}

// Where the link fails, its own goroutine notes why, and the one that sleeps in it gets its message
// as soon as the link is well.
func TestSleep_OfALinkThatFails(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		got := inRecv(t.Context(), p)
		l.change(func() { l.fails = transport.ErrInterfaceDown })
		synctest.Wait()
		if err := e.LinkErr(0); !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("LinkErr: %v", err)
		}
		l.want(t, 0, 0, true)
		l.change(func() { l.fails = nil })
		arrive(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		l.want(t, 1, 0, false)
	})
}

// Where the link is gone for good, whoever sleeps in it learns that, also who waits for what no
// port's end completes.
func TestSleep_OfALinkThatIsGone(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, _ *Port, l *sleepy, _ func(port PortID)) {
		ended := make(chan error, 1)
		becalm(e)
		go func() { ended <- e.Await(t.Context(), new(Completion)) }()
		synctest.Wait()
		l.want(t, 0, 0, true)
		l.change(func() { l.fails = transport.ErrNoInterface })
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrClosed) {
				t.Errorf("Await: %v", err)
			}
		default:
			t.Error("it sleeps on")
		}
		l.want(t, 0, 0, false)
	})
}

// One who stays awake for a stream that is for others has enough of it after a few batches, and as
// its context ends; then it is the link's own goroutine's.
func TestSleep_HasEnoughOfAStream(t *testing.T) {
	const lasts = 50 // batches
	for _, endsAt := range []int{3, lasts} {
		bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) {}}); err != nil {
				t.Fatal(err)
			}
			batches, asleep := 0, 0
			l.beforePoll = func() {
				if batches++; batches > lasts {
					return
				}
				l.change(func() {
					if l.asleep {
						asleep++
					}
				})
				if batches == endsAt {
					cancel()
				}
				l.deliver(2)
				l.deliver(2)
			}
			got := inRecv(ctx, p)
			l.change(func() { e.spinning.max = time.Hour }) // it may stay awake
			arrive(2)
			cancel()
			if want := min(endsAt, othersFrames); asleep != want {
				t.Errorf("of %d batches it has taken %d, want %d", batches, asleep, want)
			}
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("Recv: %v", err)
			}
		})
	}
}

// A Receive function that ends the goroutine which polls leaves the link to its own.
func TestSleep_OfWhomAHandlerEnds(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		if _, err := e.OpenPort(2, PortOptions{Receive: func(batch []Message, _ bool) {
			if len(batch) > 0 {
				panic("a handler's")
			}
		}}); err != nil {
			t.Fatal(err)
		}
		over := make(chan any, 1)
		becalm(e)
		go func() {
			defer func() { over <- recover() }()
			_, _, _ = p.Recv(t.Context(), make([]byte, 8))
		}()
		synctest.Wait()
		arrive(2)
		if <-over == nil {
			t.Fatal("no panic")
		}
		l.want(t, 1, 0, false)
		got := inRecv(t.Context(), p)
		arrive(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		l.want(t, 2, 0, false)
	})
}

// A goroutine that has its own message does not stay awake for more of a stream.
func TestSleep_LeavesAStreamWithItsMessage(t *testing.T) {
	for _, done := range []bool{false, true} {
		e, _, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Hour })
		e.spinning.usual.Store(int64(time.Hour))
		for !e.tryLockPoll() {
			runtime.Gosched()
		}
		arrive(t, e, others[0], 1)
		arrive(t, e, others[0], 1)
		var c Completion
		polls := 0
		links[0].poll = func() {
			if polls++; done && polls == 1 {
				c.Complete(nil)
			}
		}
		e.busyPoll(c.Done)
		if (polls == 1) != done {
			t.Errorf("done %v: %d polls", done, polls)
		}
	}
}
