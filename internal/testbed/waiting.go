package testbed

import (
	"context"
	"sync"
)

// watched is a context that tells when a Wait begins to wait for it: it has looked for frames by
// then.
type watched struct {
	context.Context
	once   sync.Once
	looked chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.looked) })
	return w.Context.Done()
}

// Waiting begins a Wait of a link, and returns where it tells its end, once it has looked for
// frames.
func Waiting(ctx context.Context, wait func(context.Context) error) (ended <-chan error) {
	w := &watched{Context: ctx, looked: make(chan struct{})}
	waited := make(chan error, 1)
	go func() { waited <- wait(w) }()
	<-w.looked
	return waited
}
