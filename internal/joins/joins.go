// Package joins is the set of multicast groups that a link has joined. Joins are counted: a group
// is left when it was left as often as joined.
package joins

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Set of groups. The zero Set is empty. Has may be called at any time.
type Set struct {
	mu     sync.Mutex // serialises changes
	closed bool
	joins  atomic.Pointer[map[transport.MAC]int]
}

// Has reports whether frames for a group address are wanted; broadcasts always are.
func (s *Set) Has(group transport.MAC) bool {
	if group == transport.Broadcast {
		return true
	}
	joins := s.joins.Load()
	return joins != nil && (*joins)[group] > 0
}

// Join counts a join. At a group's first one it calls change with true; if that fails, nothing has
// changed. change may be nil.
func (s *Set) Join(group transport.MAC, change func(member bool) error) error {
	return s.add(group, 1, change)
}

// Leave takes a join back. At a group's last one it calls change with false. Errors: the group was
// not joined.
func (s *Set) Leave(group transport.MAC, change func(member bool) error) error {
	return s.add(group, -1, change)
}

// Close ends all changes: they return transport.ErrClosed from now on.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *Set) add(group transport.MAC, n int, change func(bool) error) error {
	if !group.IsMulticast() {
		return fmt.Errorf("%v is not a group address (want one with an odd first byte)", group)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	joins := make(map[transport.MAC]int)
	if old := s.joins.Load(); old != nil {
		joins = maps.Clone(*old)
	}
	before, now := joins[group], joins[group]+n
	if now < 0 {
		return fmt.Errorf("group %v was not joined (or was left already)", group)
	}
	joins[group] = now
	if now == 0 {
		delete(joins, group)
	}
	if (before == 0 || now == 0) && change != nil {
		if err := change(now > 0); err != nil {
			return err
		}
	}
	s.joins.Store(&joins)
	return nil
}
