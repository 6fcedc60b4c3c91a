package shm

import (
	"context"

	"github.com/rawlane/rawlane/transport"
)

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller and holds no thread.
//
//	bell says      the next frame
//	awake          makes no system call
//	asleep         makes its sender write to the eventfd, once a sleep
//
// Who waits says asleep and then looks once more; wake-ups that are masked are a bell that says
// awake.
func (l *Link) Wait(ctx context.Context) error {
	l.waiters.Add(1)
	defer l.waiters.Add(-1)
	err := l.poller.Wait(ctx)
	switch {
	case l.closed.Load():
		return transport.ErrClosed
	case err != nil && err == ctx.Err(): //nolint:errorlint // the very value
		return err
	case err == nil && l.wire != nil:
		return l.wireErr()
	}
	return l.wrap("wait", err)
}

// ready reports whether a wait may end; if not, it is a sleep of its own, and the next frame wakes
// it. Only a mask says awake: a waiter that says so could take back what the end of the mask has
// just said for it.
func (l *Link) ready(uintptr) bool {
	if l.pending() {
		return !l.masked.Load() // and the end of a mask wakes who waits
	}
	l.sleep()
	return l.pending() && !l.masked.Load()
}

// sleep says that senders are to wake this link, unless wake-ups are masked.
func (l *Link) sleep() {
	l.sleepMu.Lock()
	defer l.sleepMu.Unlock()
	if !l.masked.Load() {
		l.bell.Sleep()
	}
}

// awake says that they need not.
func (l *Link) awake() {
	l.sleepMu.Lock()
	defer l.sleepMu.Unlock()
	l.bell.Awake()
}

// pending reports whether there is something to poll, or never will be: the wire is gone, and no
// station is reached through memory.
func (l *Link) pending() bool {
	return l.bell.Rung(int(l.used.Load())) || l.left.Load() ||
		l.wire != nil && (l.wire.ready.Load() || l.wire.gone.Load() && l.wireErr() != nil)
}

// MaskWakeups implements transport.WakeupMasker. It makes no system call, unless there is something
// to poll and a goroutine to be woken; what a wire needs comes on top.
func (l *Link) MaskWakeups(on bool) {
	l.masked.Store(on)
	if l.wire != nil && l.wire.masker != nil {
		l.wire.masker.MaskWakeups(on)
	}
	switch {
	case on:
		l.awake()
	case l.waiters.Load() > 0:
		if l.sleep(); l.pending() {
			l.poller.Look()
		}
	}
}

// alert has who waits look again.
func (l *Link) alert() {
	if l.waiters.Load() > 0 {
		l.poller.Look()
	}
}
