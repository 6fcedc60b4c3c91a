package barrier

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// maxLinger is the longest that Close waits to be heard: ten times what it takes without loss.
	maxLinger = 50 * time.Millisecond
	// byeInterval is the time until it says goodbye again.
	byeInterval = 3 * time.Millisecond
)

// leave leaves groups. Those of one call say goodbye at the same time.
func (s *Service) leave(groups ...*Group) {
	s.mu.Lock()
	var sets []*memberSet
	for _, g := range groups {
		if g.closed {
			continue
		}
		g.closed = true
		for _, c := range g.sets {
			if c.offloaded != nil {
				c.offloaded.endAll(clock.Now())
			}
		}
		sets = append(sets, g.sets...)
	}
	if len(sets) == 0 { // all are closed, or being closed by another call
		s.mu.Unlock()
		return
	}
	s.leaving.Add(1) // not once all groups are closed, when Close waits
	defer s.leaving.Done()
	s.mu.Unlock()
	defer s.forget(groups, sets) // also if another port's function does not return to the wait
	s.sayBye(sets)
}

// forget ends the waits of groups that have said goodbye, and forgets them.
func (s *Service) forget(groups []*Group, sets []*memberSet) {
	s.mu.Lock()
	for _, c := range slices.Backward(sets) { // a group's masks, and then all of its members
		s.bury(c)
		c.endWaits()
	}
	s.groups = slices.DeleteFunc(s.groups, func(g *Group) bool { return slices.Contains(groups, g) })
	s.mu.Unlock()
	for _, c := range sets {
		c.leaveMulticast()
	}
}

// endWaits ends all waits with ErrClosed. The caller holds Service.mu.
func (c *memberSet) endWaits() {
	for i := range c.entries {
		if e := c.entries[i].Load(); e != nil && !e.done.Done() {
			e.complete(ErrClosed)
		}
	}
}

// sayBye says goodbye to the members of some sets, until they have heard it.
func (s *Service) sayBye(sets []*memberSet) {
	ctx, cancel := context.WithTimeout(context.Background(), maxLinger)
	defer cancel()
	for ctx.Err() == nil {
		s.bye(sets)
		err := s.await(ctx, byeInterval, func() bool { return heard(sets) })
		if err == nil || errors.Is(err, mcd.ErrClosed) {
			return
		}
	}
}

// bye says goodbye to the members that have not heard it.
func (s *Service) bye(sets []*memberSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range sets {
		s.out = c.engine.Leave(s.out[:0])
		c.flush()
	}
}

// heard reports whether all members have heard the goodbyes. The caller holds mu.
func heard(sets []*memberSet) bool {
	return !slices.ContainsFunc(sets, func(c *memberSet) bool { return !c.engine.ByeAcked() })
}
