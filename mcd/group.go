package mcd

import (
	"errors"
	"fmt"
	"maps"

	"github.com/rawlane/rawlane/transport"
)

// Join makes the endpoint a member of a multicast group on all its links but those that are gone:
// from now on messages to the group reach its ports. Joins are counted.
func (e *Endpoint) Join(g GroupID) error {
	e.groupMu.Lock()
	defer e.groupMu.Unlock()
	old := *e.groups.Load()
	if old[g] == 0 {
		if err := e.joinLinks(GroupMAC(e.cfg.Cluster, g)); err != nil {
			return fmt.Errorf("join group %d: %w", g, err)
		}
	}
	e.setMembership(old, g, old[g]+1)
	return nil
}

// Leave undoes one Join. ErrNotMember if there was none.
func (e *Endpoint) Leave(g GroupID) error {
	e.groupMu.Lock()
	defer e.groupMu.Unlock()
	old := *e.groups.Load()
	if old[g] == 0 {
		return fmt.Errorf("leave group %d: %w", g, ErrNotMember)
	}
	e.setMembership(old, g, old[g]-1)
	if old[g] > 1 {
		return nil
	}
	if err := e.leaveLinks(len(e.nics), GroupMAC(e.cfg.Cluster, g)); err != nil {
		return fmt.Errorf("leave group %d: %w", g, err)
	}
	return nil
}

// setMembership swaps in a copy of the groups in which g has been joined n times. Readers take no
// lock.
func (e *Endpoint) setMembership(old map[GroupID]int, g GroupID, n int) {
	groups := maps.Clone(old)
	groups[g] = n
	if n == 0 {
		delete(groups, g)
	}
	e.groups.Store(&groups)
}

// joinLinks joins the group on all links, or on none. Those that are gone do not matter.
func (e *Endpoint) joinLinks(group transport.MAC) error {
	for i := range e.nics {
		if !e.isLeft(i) {
			continue
		}
		if err := transport.Join(e.nics[i].link, group); err != nil {
			_ = e.leaveLinks(i, group) // the first error is the one to report
			return err
		}
	}
	return nil
}

// leaveLinks leaves the group on the first n links, all of them even if one fails. Those that are
// gone are in none.
func (e *Endpoint) leaveLinks(n int, group transport.MAC) error {
	var errs []error
	for i := range n {
		if e.isLeft(i) {
			errs = append(errs, transport.Leave(e.nics[i].link, group))
		}
	}
	return errors.Join(errs...)
}
