package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// maxConns bounds the connections that are forwarded at a time: further ones wait to be accepted.
const maxConns = 4096

// acceptPause is before Accept is tried again that failed for want of a resource.
const acceptPause = 100 * time.Millisecond

// forwarder passes connections on.
type forwarder struct {
	dial   func(ctx context.Context) (net.Conn, error)
	failed func(from net.Addr, err error) // a connection that could not be passed on
}

// serve passes on the connections of a listener until ctx ends, or the listener fails. It returns
// when all of them have ended.
func (f *forwarder) serve(ctx context.Context, l net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	slots := make(chan struct{}, maxConns)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := l.Accept()
		var temporary interface{ Temporary() bool }
		switch {
		case err == nil:
			running.Go(func() {
				defer func() { <-slots }()
				f.pass(ctx, c)
			})
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &temporary) && temporary.Temporary(): // no descriptors, or reset before it was taken
			<-slots
			_ = cli.Pause(ctx, acceptPause) // the loop looks at ctx
		default:
			return err
		}
	}
}

// pass connects a connection to its destination, until both halves of it have ended. If ctx ends
// first, it is reset.
func (f *forwarder) pass(ctx context.Context, a net.Conn) {
	defer context.AfterFunc(ctx, func() { reset(a) })()
	b, err := f.dialFor(ctx, a)
	if err != nil {
		reset(a)
		if ctx.Err() == nil && !errors.Is(err, errGone) {
			f.failed(a.RemoteAddr(), err)
		}
		return
	}
	defer context.AfterFunc(ctx, func() { reset(b) })()
	var both sync.WaitGroup
	there, back := make(chan struct{}), make(chan struct{}) // closed when that half has ended
	var aEnds, bEnds atomic.Bool                            // what goes to a, or b, has ended
	both.Go(func() { half(b, a, &bEnds, &aEnds, there, back) })
	both.Go(func() { half(a, b, &aEnds, &bEnds, back, there) })
	both.Wait()
	_, _ = a.Close(), b.Close() // both halves have ended
}

// errGone: nobody waits for the connection any more.
var errGone = errors.New("gone while its destination was dialed")

// dialFor dials until that ends, or the source is gone.
func (f *forwarder) dialFor(ctx context.Context, from net.Conn) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dialed := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		if watch(from, dialed) != nil {
			cancel(errGone)
		}
	})
	to, err := f.dial(ctx)
	close(dialed)
	watching.Wait()
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		err = errGone
	}
	return to, err
}

// half copies what comes from one connection to the other until its end, which is passed on. If
// either fails, both are reset: neither half can be trusted any more. It returns once the other
// half has ended, too.
func half(to, from net.Conn, toEnds, fromEnds *atomic.Bool, ended chan<- struct{}, other <-chan struct{}) {
	_, err := io.Copy(&watchful{to, from}, from)
	if err == nil && wasReset(from) && !fromEnds.Load() { // in this order: the other half may end it meanwhile
		err = syscall.ECONNRESET
	}
	if err == nil {
		toEnds.Store(true)
		err = to.(interface{ CloseWrite() error }).CloseWrite()
	}
	close(ended)
	if err == nil {
		err = watch(from, other)
		if errors.Is(err, syscall.EPIPE) { // there is nobody for the other half; this one was whole
			_, _ = to.Close(), from.Close()
			return
		}
	}
	if err != nil {
		reset(to)
		reset(from)
	}
}

// watch looks at the source of a half that has ended until the other half has. Nobody reads it any
// more, and as long as there is nothing to be written to it nobody else hears that it is gone. A
// broken pipe counts the second time: it may be the other half's end, which is known by then.
func watch(from net.Conn, other <-chan struct{}) error {
	tick := time.NewTicker(lookAfter)
	defer tick.Stop()
	for broken := false; ; {
		select {
		case <-other:
			return nil
		case <-tick.C:
		}
		_, err := from.Write(nil)
		switch {
		case errors.Is(err, syscall.EPIPE) && !broken:
			broken = true
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded): // the other half has that
			return err
		}
	}
}

// watchful is a half's destination. While it takes nothing its source is not read, and would not
// tell that it was reset, or that its other end is gone: so that is looked at meanwhile.
type watchful struct{ to, from net.Conn }

// lookAfter is how long a write waits until the source is looked at, and then again.
const lookAfter = time.Second

// Write writes to the destination, until that fails or the source does.
func (w *watchful) Write(b []byte) (n int, err error) {
	defer func() { _ = w.to.SetWriteDeadline(time.Time{}) }() // the other half may look
	for {
		_ = w.to.SetWriteDeadline(time.Now().Add(lookAfter)) // on one that is closed Write fails, too
		k, err := w.to.Write(b[n:])
		n += k
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := w.look(); err != nil {
			return n, err
		}
	}
}

// look returns why the source has failed. That its other half has ended, or is just being looked at
// itself, is no failure.
func (w *watchful) look() error {
	_, err := w.from.Write(nil)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// reset ends a connection so that its other end hears that it was cut off: EOF would say that what
// has come is whole.
func reset(c net.Conn) {
	_ = c.(interface{ SetLinger(sec int) error }).SetLinger(0)
	_ = c.Close()
}
