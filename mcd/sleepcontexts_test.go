package mcd

import (
	"context"
	"os"
	"os/signal"
	"testing"
	"testing/synctest"
	"time"
)

// A context that has ended interrupts nobody once another one was waited with, or the endpoint is
// closed.
func TestSleep_ForgetsContexts(t *testing.T) {
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		former, endFormer := context.WithCancel(t.Context())
		later, endLater := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{former, former, later, later} {
			got := inRecv(ctx, p)
			arrive(1)
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		l.want(t, 4, 0, false)
		endFormer()
		synctest.Wait()
		if l.interrupted {
			t.Error("by one that was waited with before")
		}
		once, endOnce := context.WithCancel(t.Context())
		got := inRecv(once, p)
		arrive(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		endOnce()
		synctest.Wait()
		if l.interrupted {
			t.Error("by one that was made for a single wait")
		}
		for range 2 {
			got := inRecv(later, p)
			arrive(1)
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if e.sleeper.stop == nil {
			t.Error("one that was waited with twice is not kept")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		endLater()
		synctest.Wait()
		if l.interrupted {
			t.Error("once the endpoint is closed")
		}
	})
}

// reused is a context that is of no use behind the wait that it was for: its end has no error then.
type reused struct {
	context.Context
	end chan struct{}
}

func (r *reused) Done() <-chan struct{} { return r.end }

// Contexts that are not the standard library's are not kept: one that ends behind its wait without
// an error would end the process.
func TestSleep_KeepsNoContextsOfOthers(t *testing.T) {
	type key struct{}
	bySleepy(t, func(t *testing.T, e *Endpoint, p *Port, l *sleepy, arrive func(port PortID)) {
		r := &reused{t.Context(), make(chan struct{})}
		for _, ctx := range []context.Context{r, context.WithValue(r, key{}, 0)} {
			got := inRecv(ctx, p)
			l.want(t, 0, l.waits, false)
			arrive(1)
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		close(r.end)
		synctest.Wait()
	})
	for name, ctx := range map[string]context.Context{"background": context.Background(), "without cancel": context.WithoutCancel(t.Context())} {
		if !isLasting(ctx) || !isLasting(context.WithValue(ctx, key{}, 0)) {
			t.Error(name)
		}
	}
	timed, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	signalled, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	if !isLasting(timed) || !isLasting(signalled) || !isLasting(context.WithValue(context.WithValue(timed, key{}, 0), key{}, 1)) {
		t.Error("with a time, by a signal, or with values")
	}
}
