package mcd

import (
	"fmt"
	"maps"

	"github.com/rawlane/rawlane/transport"
)

// Join makes the endpoint a member of a multicast group on all its links: from now on messages to
// the group reach its ports. Joins are counted.
func (e *Endpoint) Join(g GroupID) error {
	e.groupMu.Lock()
	defer e.groupMu.Unlock()
	old := *e.groups.Load()
	if old[g] == 0 {
		if err := e.eachLink(g, transport.Join, transport.Leave); err != nil {
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
	if err := e.eachLink(g, transport.Leave, nil); err != nil {
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

// eachLink does something with the group on every link; on the first error it undoes what it did.
func (e *Endpoint) eachLink(g GroupID, do, undo func(transport.Link, transport.MAC) error) error {
	mac := GroupMAC(e.cfg.Cluster, g)
	for i := range e.nics {
		err := do(e.nics[i].link, mac)
		if err == nil {
			continue
		}
		for k := range e.nics[:i] {
			if undo != nil {
				_ = undo(e.nics[k].link, mac) // the first error is the one to report
			}
		}
		return err
	}
	return nil
}
