package mpi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Ranks that are none.
const (
	// AnySource receives from any rank: MPI_ANY_SOURCE.
	AnySource = -1
	// ProcNull is nobody: a send to it, or a receive from it, is complete at once. MPI_PROC_NULL.
	ProcNull = -2
)

// AnyTag receives any tag: MPI_ANY_TAG.
const AnyTag = -1

// worldContext is the context of the world's communicator. Each has one for messages and, after it,
// one for collective operations.
const worldContext = 0

// Comm is a communicator: a group of processes whose messages do not mix with those of others.
type Comm struct {
	w       *World
	context uint32
	members []matching.Rank // ranks in the world
	rank    int             // of this process
	choices map[string][]Algorithm

	operations atomic.Uint32 // collective ones
	revoked    atomic.Bool
	freed      atomic.Bool
	agreements agreements
	windows    []*Comm // of its windows: revoked with it. World.mu guards them
	madeBy     int32   // of a window's: the operation that has made it

	once      sync.Once // makes the group, and what ends waits for its barriers
	groupErr  error
	unrevoked context.Context // ends with Revoke

	anyLeft atomic.Bool // there are leavers

	// World.mu guards these.
	underWay    []int32 // collective operations
	leavers     []leaver
	multicasts  *multicasts // or nil
	group       *barrier.Group
	turns       *turns // or nil
	endBarriers context.CancelFunc
	left        bool // the group is closed, or will not be used
}

// place completes a communicator whose members are known.
func (c *Comm) place() {
	c.rank = c.rankOf(c.w.me.rank)
	c.choices = choices(c.w.cfg.Algorithms, len(c.members), c.w.crowds(c.members))
}

// Rank returns this process' number in the communicator.
func (c *Comm) Rank() int { return c.rank }

// Size returns how many processes the communicator has.
func (c *Comm) Size() int { return len(c.members) }

// rankOf returns the rank of a process in the communicator.
func (c *Comm) rankOf(world matching.Rank) int {
	if int(world) < len(c.members) && c.members[world] == world {
		return int(world)
	}
	return slices.Index(c.members, world)
}

func (c *Comm) checkRank(rank int) error {
	if rank < 0 || rank >= len(c.members) {
		return fmt.Errorf("rank %d: %w (0 to %d)", rank, ErrRank, len(c.members)-1)
	}
	return nil
}

// over says why nothing is begun in the communicator any more, if that is so.
func (c *Comm) over() error {
	switch {
	case c.freed.Load():
		return ErrFreed
	case c.revoked.Load():
		return ErrRevoked
	}
	return nil
}

// refusal says why nothing is begun in the communicator any more, as of a world that is closed.
func (c *Comm) refusal() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.state()
}

func checkTag(tag int) error {
	if tag < 0 || tag > MaxTag {
		return fmt.Errorf("tag %d: %w (0 to %d)", tag, ErrTag, MaxTag)
	}
	return nil
}

// World returns the world that the communicator is of.
func (c *Comm) World() *World { return c.w }
