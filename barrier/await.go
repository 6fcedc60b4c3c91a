package barrier

import (
	"context"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// condition is one that messages may make true, and a goroutine that waits for it.
type condition struct {
	holds func() bool // called with Service.mu held
	done  mcd.Completion
}

// await returns when a condition holds, or with the context's error when ctx ends or a time has
// passed, or with mcd.ErrClosed if the endpoint is closed. While it waits, the calling goroutine
// polls.
func (s *Service) await(ctx context.Context, most time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	c := &condition{holds: holds}
	s.mu.Lock()
	s.awaited = append(s.awaited, c)
	s.checkAwaited()
	s.mu.Unlock()
	defer func() { // also if another port's function does not return to the wait
		s.mu.Lock()
		defer s.mu.Unlock()
		s.awaited = slices.DeleteFunc(s.awaited, func(other *condition) bool { return other == c })
	}()
	return s.ep.Await(ctx, &c.done)
}

// checkAwaited wakes the goroutines whose conditions hold. The caller holds mu.
func (s *Service) checkAwaited() {
	s.awaited = slices.DeleteFunc(s.awaited, func(c *condition) bool {
		holds := c.holds()
		if holds {
			c.done.Complete(nil)
		}
		return holds
	})
}
